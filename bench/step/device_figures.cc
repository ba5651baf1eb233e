#include "bench/step/device_figures.h"

#include <nlohmann/json.hpp>

#include "bench/harness/measure.h"
#include "bench/harness/report.h"

namespace syncopate::bench {
namespace {

constexpr double kTera = 1e12;

std::string share_text(double reached, double ceiling) {
  return number_text(100.0 * reached / ceiling) + "%";
}

}  // namespace

std::string describe(const DeviceFigures& figures, double step_seconds) {
  const double flops = figures.work.flops / step_seconds;
  const double bytes = figures.work.bytes / step_seconds;
  std::string text = number_text(flops / kTera) + " TFLOP/s, " +
                     share_text(flops, figures.ceilings.product_flops_per_second) + " of the " +
                     number_text(figures.ceilings.product_flops_per_second / kTera) +
                     " of a large product; at least " + number_text(bytes / kTera) + " TB/s, " +
                     share_text(bytes, figures.ceilings.copy_bytes_per_second) + " of the " +
                     number_text(figures.ceilings.copy_bytes_per_second / kTera) +
                     " of a large copy; ";
  if (figures.busy.empty()) return text + "how busy it was the driver does not say";
  return text + number_text(100.0 * median(figures.busy)) + "% busy, " +
         number_text(figures.memory_bytes / (1 << 30)) + " GiB in use";
}

nlohmann::json figures_json(const DeviceFigures& figures, double step_seconds) {
  nlohmann::json document = {
      {"step_flops", figures.work.flops},
      {"step_bytes", figures.work.bytes},
      {"flops_per_second", figures.work.flops / step_seconds},
      {"bytes_per_second", figures.work.bytes / step_seconds},
      {"ceiling_flops_per_second", figures.ceilings.product_flops_per_second},
      {"ceiling_bytes_per_second", figures.ceilings.copy_bytes_per_second}};
  if (!figures.busy.empty()) {
    document["busy"] = median(figures.busy);
    document["memory_bytes"] = figures.memory_bytes;
  }
  return document;
}

}  // namespace syncopate::bench
