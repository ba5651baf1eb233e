// Tests the utilisation of GPUs as reported by a replacement of NVML.
#include "models/backend/cuda/nvml.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/base/deadline.h"

namespace syncopate::cuda {
namespace {

constexpr std::chrono::milliseconds kInterval(1);

std::optional<DeviceLoad> first_load(const std::vector<std::string>& bus_ids) {
  const auto monitor = make_nvml_monitor(SYNCOPATE_FAKE_NVML, bus_ids, kInterval);
  if (monitor == nullptr) return std::nullopt;
  const Deadline deadline = Deadline::after(std::chrono::seconds(10));
  while (!monitor->load() && !deadline.passed()) std::this_thread::yield();
  return monitor->load();
}

TEST(NvmlMonitor, ReportsTheUtilisationOfAllDevices) {
  const auto load = first_load({"0000:18:00.0", "0000:2a:00.0"});
  ASSERT_TRUE(load);
  EXPECT_DOUBLE_EQ(load->utilisation, 0.6);
  EXPECT_EQ(load->memory_bytes, 30);
  EXPECT_DOUBLE_EQ(load->watts, 500.0);
}

TEST(NvmlMonitor, ReportsNothingBeforeItsFirstIntervalHasPassed) {
  const auto monitor = make_nvml_monitor(
      SYNCOPATE_FAKE_NVML, std::vector<std::string>{"0000:18:00.0"}, std::chrono::hours(1));
  ASSERT_NE(monitor, nullptr);
  EXPECT_FALSE(monitor->load());
}

TEST(NvmlMonitor, LeavesOutDevicesThatTheDriverDoesNotKnow) {
  const auto load = first_load({"0000:ff:00.0", "0000:18:00.0"});
  ASSERT_TRUE(load);
  EXPECT_DOUBLE_EQ(load->utilisation, 0.4);
}

TEST(NvmlMonitor, IsAbsentWithoutInformation) {
  EXPECT_EQ(
      make_nvml_monitor(SYNCOPATE_FAKE_NVML, std::vector<std::string>{"0000:ff:00.0"}, kInterval),
      nullptr);
  EXPECT_EQ(make_nvml_monitor("libno-such-library.so", std::vector<std::string>{"0000:18:00.0"},
                              kInterval),
            nullptr);
}

}  // namespace
}  // namespace syncopate::cuda
