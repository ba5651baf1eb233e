#include "deploy/program.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "deploy/cli/command_line.h"
#include "deploy/command_process.h"
#include "worker/run/run_workload.h"

namespace syncopate {

int run_program(int argc, char** argv, const Workload& workload) {
  const std::string program = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "";
  const auto train = [&](const std::vector<std::string>& arguments,
                         std::unique_ptr<MpiSession>& mpi) {
    const CommandOptions parsed =
        parse_train(arguments, Environment::of_process(), OwnWorkload{program});
    if (const auto* text = std::get_if<TextOptions>(&parsed)) {
      std::cout << text->text << std::flush;
      return 0;
    }
    const auto& options = std::get<TrainOptions>(parsed);
    return train_as_task(options, checked_workload(workload, options), mpi);
  };
  return run_command_process(argc, argv, train);
}

}  // namespace syncopate
