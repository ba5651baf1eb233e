#include "deploy/cli/command_line.h"
#include "worker/run/run_sizes.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "models/base/errors.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

CommandOptions parse(Arguments arguments, const Environment& environment = {}) {
  return parse_command_line(arguments, environment);
}

TrainOptions parse_train(const Arguments& flags, const Environment& environment = {}) {
  return std::get<TrainOptions>(parse(as_words("train", flags), environment));
}

// Returns the message of the error that the flags cause, or "" if they cause none.
std::string error_of(const Arguments& flags) {
  return message_if_thrown<Error>([&] { parse_train(flags); });
}

TEST(TrainFlags, AloneTrainMnistCnnOnDigitsWithAdam) {
  const TrainOptions options = parse_train({});
  EXPECT_EQ(options.model, "mnist-cnn");
  EXPECT_EQ(options.data, "digits");
  EXPECT_EQ(options.strategy.name, "one-device");
  EXPECT_EQ(options.strategy.optimizer.name, "adam");
  EXPECT_DOUBLE_EQ(options.schedule.learning_rate, 0.001);
  EXPECT_EQ(options.strategy.batch_size_per_replica, 64);
  EXPECT_EQ(options.loop.total_epochs, 3);
  EXPECT_TRUE(options.loop.checkpoint_dir.empty());
  EXPECT_FALSE(options.hides_progress);
}

TEST(TrainFlags, SetWhatTheyName) {
  const TrainOptions options = parse_train(as_words(
      "--model resnet20 --data cifar10:/c --batch-size 128 --epochs 7 --optimizer momentum "
      "--nesterov --momentum 0.8 --learning-rate 0.1 --weight-decay 0.0001 --lr-schedule step "
      "--lr-milestones 3,5.5 --lr-factor 0.2 --warmup-epochs 0.5 --augment crop-flip --bucket-mb 4 "
      "--seed 9 --threads 3 --input-threads 2 --no-progress --checkpoint-dir ck --checkpoint-every "
      "10 --keep-checkpoints 2 --resume --metrics m.jsonl"));
  EXPECT_EQ(options.model, "resnet20");
  EXPECT_EQ(options.data, "cifar10:/c");
  EXPECT_EQ(options.global_batch_size, 128);
  EXPECT_EQ(options.loop.total_epochs, 7);
  EXPECT_EQ(options.strategy.optimizer.name, "momentum");
  EXPECT_TRUE(options.strategy.optimizer.nesterov);
  EXPECT_FLOAT_EQ(options.strategy.optimizer.momentum, 0.8F);
  EXPECT_FLOAT_EQ(options.strategy.optimizer.weight_decay, 0.0001F);
  EXPECT_DOUBLE_EQ(options.schedule.learning_rate, 0.1);
  EXPECT_EQ(options.schedule.kind, ScheduleKind::kStep);
  EXPECT_EQ(options.schedule.milestones, (std::vector<double>{3.0, 5.5}));
  EXPECT_DOUBLE_EQ(options.schedule.factor, 0.2);
  EXPECT_DOUBLE_EQ(options.schedule.warmup_epochs, 0.5);
  EXPECT_EQ(options.input.augment, Augment::kCropFlip);
  EXPECT_EQ(options.strategy.bucket_bytes, 4 << 20);
  EXPECT_EQ(options.strategy.seed, 9U);
  EXPECT_EQ(options.strategy.lanes, 3);
  EXPECT_EQ(options.input.threads, 2);
  EXPECT_TRUE(options.hides_progress);
  EXPECT_EQ(options.loop.checkpoint_dir, "ck");
  EXPECT_EQ(options.loop.checkpoint_every_steps, 10);
  EXPECT_EQ(options.loop.keep_checkpoints, 2);
  EXPECT_TRUE(options.resume);
  EXPECT_EQ(options.metrics, "m.jsonl");
}

TEST(TrainFlags, TuneTheInputOfEncodedSamplesUnlessTheyGiveNumbers) {
  const auto texts = [&](const Arguments& flags) {
    const InputOptions options = parse_train(flags).input;
    return threads_text(options) + " " + prefetch_text(options);
  };
  EXPECT_EQ(texts({}), "1 2");
  EXPECT_EQ(texts({"--data", "images:DIR"}), "auto auto");
  EXPECT_EQ(texts({"--data", "images:DIR", "--input-threads", "3"}), "3 auto");
  EXPECT_EQ(texts({"--data", "images:DIR", "--prefetch", "4"}), "auto 4");
  EXPECT_EQ(texts({"--input-threads", "auto", "--prefetch", "auto"}), "auto auto");
  EXPECT_EQ(texts({"--input-threads", "auto", "--input-threads", "5"}), "5 2");
}

TEST(TrainFlags, ReadTheSizeOfPictures) {
  const auto image = [](const Arguments& flags) { return parse_train(flags).image; };
  EXPECT_EQ(image({"--image-size", "64"}).height, 64);
  EXPECT_EQ(image({"--image-size", "64"}).width, 64);
  EXPECT_EQ(image({"--image-size", "48x64"}).height, 48);
  EXPECT_EQ(image({"--image-size", "48x64"}).width, 64);
  EXPECT_TRUE(image({"--exif"}).apply_exif);
  EXPECT_FALSE(image({}).apply_exif);
  for (const char* const wrong : {"0", "100000", "x", "64x", "x64", "64x64x3", "6.5"}) {
    EXPECT_EQ(error_of({"--image-size", wrong}),
              "--image-size " + std::string(wrong) +
                  ": expected pixels from 1 to 8192, as in 224 or 192x224 (height x width)");
  }
}

TEST(TrainFlags, KeepDecodedPicturesOnTheDiskOfTheMachine) {
  const auto folder = [](const Environment& environment, const Arguments& flags = {}) {
    return parse_train(flags, environment).image.cache_dir.parent_path().string();
  };
  EXPECT_EQ(folder(Environment()), "/tmp");
  EXPECT_EQ(folder(Environment(Environment::Variables{{"TMPDIR", "/scratch"}})), "/scratch");
  EXPECT_EQ(
      folder(Environment(Environment::Variables{{"TMPDIR", "/scratch"}, {"SLURM_TMPDIR", "/job"}})),
      "/job");
  EXPECT_EQ(folder(Environment(Environment::Variables{{"SLURM_TMPDIR", "/job"}}),
                   {"--cache-dir", "/mine/cache"}),
            "/mine");
}

TEST(TrainFlags, GivenTwiceTheLastOneCounts) {
  EXPECT_EQ(parse_train({"--epochs", "2", "--epochs", "9"}).loop.total_epochs, 9);
}

// The limit on lanes applies to each replica and not to the machine: replicas that share 32 CPUs in
// one process have as many lanes as in processes that are bound to 16 CPUs each.
TEST(DefaultLanes, AreTheCpusSharedOutUpToWhatABatchFeeds) {
  EXPECT_EQ(lanes_of(2, 1), 2);
  EXPECT_EQ(lanes_of(32, 1), 8);
  EXPECT_EQ(lanes_of(32, 2), lanes_of(16, 1));
  EXPECT_EQ(lanes_of(2, 4), 1);
}

TEST(ChooseLanes, DividesTheCpuQuotaAmongBoundTasksToo) {
  TrainOptions options = parse_train({});
  options.strategy.lanes = 0;
  const CpuLimits quota{.affinity = 64, .quota = 3.5};
  EXPECT_EQ(choose_lanes(options, nullptr, quota), 4);
  options.strategy.replicas = 2;
  EXPECT_EQ(choose_lanes(options, nullptr, quota), 2);
  EXPECT_EQ(choose_lanes(options, nullptr, {.affinity = 64, .quota = 1.0}), 1);
  options.strategy.replicas = 1;
  options.strategy.name = "parameter-server";
  options.cluster.local_size = 2;
  options.has_own_cpus = true;
  EXPECT_EQ(choose_lanes(options, nullptr, quota), 2);
  EXPECT_EQ(choose_lanes(options, nullptr, {.affinity = 4, .quota = std::nullopt}), 4);
  options.has_own_cpus = false;
  EXPECT_EQ(choose_lanes(options, nullptr, {.affinity = 4, .quota = std::nullopt}), 2);
}

TEST(ChooseLanes, IsNoMoreThanTheCpusThatSlurmGaveTheTask) {
  TrainOptions options = parse_train({});
  options.strategy.lanes = 0;
  options.cluster.num_cpus = 3;
  EXPECT_EQ(choose_lanes(options, nullptr, {.affinity = 64, .quota = std::nullopt}), 3);
  EXPECT_EQ(choose_lanes(options, nullptr, {.affinity = 2, .quota = std::nullopt}), 2);
}

TEST(TrainFlags, StepsReplaceEpochs) {
  EXPECT_EQ(parse_train({"--steps", "12"}).loop.total_steps, 12);
}

TEST(TrainFlags, LearningRateDefaultsToWhatTheOptimizerIsUsedWith) {
  EXPECT_DOUBLE_EQ(parse_train({"--optimizer", "adamw"}).schedule.learning_rate, 0.001);
  EXPECT_DOUBLE_EQ(parse_train({"--optimizer", "sgd"}).schedule.learning_rate, 0.01);
}

TEST(TrainFlags, MayNameOneDeviceTwice) {
  const TrainOptions options = parse_train({"--metrics", "/dev/null", "--trace", "/dev/null"});
  EXPECT_EQ(options.metrics, "/dev/null");
  EXPECT_EQ(options.trace, "/dev/null");
}

TEST(TrainFlags, ComeFromAFileToo) {
  const TemporaryFolder folder;
  const auto file = folder / "options.ini";
  std::ofstream(file) << "model = mlp\nepochs = 5\nresume = true\ncheckpoint-dir = ck\n";
  const TrainOptions options = parse_train({"--config", file.string(), "--epochs", "6"});
  std::ofstream(file) << "modle = mlp\n";
  const std::string unknown = error_of({"--config", file.string()});
  EXPECT_EQ(options.model, "mlp");
  EXPECT_EQ(options.loop.total_epochs, 6) << "a flag outranks the file";
  EXPECT_TRUE(options.resume);
  EXPECT_TRUE(contains(unknown, "modle", "--config: ", "did you mean '--model'"));
}

TEST(TrainFlags, OfTheCommandLineOutrankWhatTheyExcludeInAFile) {
  const TemporaryFolder folder;
  const auto file = folder / "options.ini";
  std::ofstream(file) << "epochs = 5\nbatch-size = 96\nresume = false\nmodel = mlp\n";
  const Arguments read_it{"--config", file.string()};
  const auto with = [&](const Arguments& flags) { return parse_train(as_words(read_it, flags)); };
  EXPECT_EQ(with({"--steps", "3"}).loop.total_steps, 3);
  EXPECT_EQ(with({"--batch-size-per-replica", "32"}).strategy.batch_size_per_replica, 32);
  EXPECT_EQ(with({}).loop.total_epochs, 5);
  EXPECT_FALSE(with({}).resume);
  // Two contradicting lines of the flags file are an error, since no rule chooses between them.
  std::ofstream(file) << "epochs = 5\nsteps = 3\n";
  EXPECT_TRUE(contains(error_of(read_it), "--epochs and --steps: leave one of them out"));
  std::ofstream(file) << "[train]\nepochs = 5\n";
  EXPECT_TRUE(contains(error_of(read_it), "no sections"));
}

struct BadFlags {
  Arguments flags;
  std::string says;
};

class BadTrainFlags : public testing::TestWithParam<BadFlags> {};

TEST_P(BadTrainFlags, AreRefusedWithTheReasonInOneLine) {
  const std::string line = error_of(GetParam().flags);
  EXPECT_TRUE(contains(line, GetParam().says)) << "'" << line << "'";
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
}

INSTANTIATE_TEST_SUITE_P(
    EachKind, BadTrainFlags,
    testing::Values(
        BadFlags{{"--modle", "mlp"}, "unknown flag --modle; did you mean '--model'"},
        BadFlags{{"mlp"}, "unexpected argument mlp"},
        BadFlags{{"--epochs"}, "--epochs: its value is missing; expected --epochs N"},
        BadFlags{{"--epochs", "--steps", "3"}, "--epochs: its value is missing; --steps stands in"},
        BadFlags{{"--lr", "0.1"}, "did you mean '--learning-rate'"},
        BadFlags{{"--strategy", "horovod"}, "did you mean 'multi-worker-mirrored'"},
        BadFlags{{"--strategy", "none"}, "choose one of one-device"},
        BadFlags{{"--data", "MNIST"}, "did you mean 'mnist:DIR'"},
        BadFlags{{"--data", "/my/mnist"}, "did you mean mnist:/my/mnist or"},
        BadFlags{{"--data=mnist:~/mnist"}, "did you mean mnist:$HOME/mnist?"},
        BadFlags{{"--model", "mnist_cnn"},
                 "did you mean 'mnist-cnn'? Choose one of mnist-cnn, mlp"},
        BadFlags{{"--strategy", "mirored"}, "--strategy mirored: no such name"},
        BadFlags{{"--strategy", "parameter-server"},
                 "no servers; start the job with syncopate launch --servers M"},
        BadFlags{{"--strategy", "central-storage", "--consistency", "lazy"}, "--consistency lazy"},
        BadFlags{as_words("--strategy central-storage --consistency async --max-staleness 2"),
                 "--max-staleness requires --consistency ssp"},
        BadFlags{as_words("--strategy central-storage --consistency async --backup-workers 1"),
                 "--backup-workers requires --consistency sync"},
        BadFlags{{"--strategy", "central-storage", "--staleness-rule", "dc"},
                 "under --consistency sync no gradient is stale"},
        BadFlags{{"--service-time", "20"}, "expected constant:MS | exponential:MS |"},
        BadFlags{{"--slow", "worker=1,factor=2"},
                 "--slow requires --service-time, which it multiplies"},
        BadFlags{{"--pause", "worker=1,at=1,for=1"},
                 "expected a worker from 0 to 0, as the job has 1 worker"},
        BadFlags{{"--pause", "worker=1"}, "such as worker=1,at=20s,for=5s"},
        BadFlags{{"--eval-every-steps", "-1"}, "--eval-every-steps"},
        BadFlags{{"--label-smoothing", "1"}, "--label-smoothing 1: expected"},
        BadFlags{{"--accumulate", "0"}, "--accumulate 0: expected"},
        BadFlags{{"--clip-norm", "0"}, "--clip-norm 0: expected"},
        BadFlags{{"--ema", "1"}, "--ema 1: expected a number between 0 and 1"},
        BadFlags{{"--stop-at", "accuracy=97"}, "a fraction from 0 to 1"},
        BadFlags{{"--early-stop", "3"}, "such as metric=val_loss,patience=3"},
        BadFlags{{"--reduce-on-plateau", "factor=2"}, "such as factor=0.1,patience=2"},
        BadFlags{{"--metrics", "m.json", "--trace", "m.json"},
                 "--metrics and --trace write m.json; give them different files"},
        BadFlags{{"--metrics", "no/../m.json", "--trace", "./m.json"},
                 "--metrics and --trace write no/../m.json; give them different files"},
        BadFlags{{"--metrics", "x/.lock", "--checkpoint-dir", "x"},
                 "--metrics and the lock of --checkpoint-dir write x/.lock; give them different"},
        BadFlags{{"--keep-best"}, "--keep-best requires --checkpoint-dir DIR"},
        BadFlags{{"--stop-at", "loss=0.1", "--eval-every", "0"}, "--stop-at requires evaluations"},
        BadFlags{as_words("--strategy central-storage --replicas 3 --share-devices --consistency "
                          "sync --backup-workers 1 --clip-norm 1"),
                 "--clip-norm requires gradients that one task sums"},
        BadFlags{{"--logdir", "here"}, "unknown flag --logdir; did you mean '--tensorboard'"},
        BadFlags{{"--model", "alexnet"}, "--model alexnet: no such name; choose one of mnist-cnn"},
        BadFlags{{"--model", "net.py"},
                 "--model net.py: networks of PyTorch and Keras are read as"},
        BadFlags{{"--model", "resnet2.0"},
                 "--model resnet2.0: no such name; did you mean 'resnet20'?"},
        BadFlags{{"--model", "net.json"},
                 "--model net.json: for a network file, give file:net.json"},
        BadFlags{{"--model", "net.onnx"}, "run `syncopate convert net.onnx net.json"},
        BadFlags{{"--consistency", "ssp"},
                 "--consistency requires --strategy parameter-server or central-storage"},
        BadFlags{{"--collective", "rings"}, "did you mean 'ring'?"},
        BadFlags{{"--transport", "udp"}, "--transport udp"},
        BadFlags{{"--batch-norm", "global"}, "--batch-norm global"},
        BadFlags{{"--rank=1"}, "--world-size"},
        BadFlags{{"--rendezvous-timeout", "0"}, "--rendezvous-timeout 0"},
        BadFlags{{"--peer-timeout", "nan"}, "--peer-timeout"},
        BadFlags{
            as_words("--strategy mirrored --rank 0 --world-size 2 --rendezvous 127.0.0.1:4000"),
            "choose --strategy multi-worker-mirrored"},
        BadFlags{{"--learning-rate-scale", "cubic"}, "--learning-rate-scale cubic"},
        BadFlags{{"--learning-rate-scale", "inverse"},
                 "--learning-rate-scale inverse: no such name"},
        BadFlags{{"--learning-rate-scale", "linear", "--batch-size", "64"},
                 "--reference-batch-size"},
        BadFlags{{"--reference-batch-size", "64"}, "--learning-rate-scale"},
        BadFlags{{"--epochs", "9223372036854775807"},
                 "expected a whole number from 1 to 1000000000"},
        BadFlags{{"--steps", "9223372036854775807"},
                 "expected a whole number from 1 to 1000000000"},
        BadFlags{{"--checkpoint-dir", ""}, "--checkpoint-dir is empty"},
        BadFlags{{"--metrics", ""}, "--metrics is empty"},
        BadFlags{{"--optimizer", "lion"}, "choose one of sgd"},
        BadFlags{{"--batch-size-per-replica", "0"}, "--batch-size-per-replica 0: expected"},
        BadFlags{{"--batch-size", "-8"}, "--batch-size -8: expected"},
        BadFlags{{"--batch-size", "8", "--batch-size-per-replica", "8"},
                 "--batch-size-per-replica and --batch-size: leave one of them out"},
        BadFlags{{"--batch-size", "8x"}, "--batch-size"},
        BadFlags{{"--epochs", "-1"}, "--epochs -1: expected"},
        BadFlags{{"--epochs", "2", "--steps", "2"}, "--epochs and --steps: leave one of them out"},
        BadFlags{{"--steps", "0"}, "--steps 0"},
        BadFlags{{"--learning-rate", "nan"}, "--learning-rate nan: expected"},
        BadFlags{{"--learning-rate", "0"}, "--learning-rate 0: expected"},
        BadFlags{{"--learning-rate", "-0.1"}, "--learning-rate -0.1: expected"},
        BadFlags{{"--learning-rate", "inf"}, "--learning-rate inf: expected"},
        BadFlags{{"--threads", "0"}, "--threads 0: expected"},
        BadFlags{{"--input-threads", "0"}, "--input-threads 0: expected"},
        BadFlags{{"--input-threads", "2.5"}, "--input-threads 2.5: expected auto or a whole"},
        BadFlags{{"--input-threads", "1025"}, "--input-threads 1025: expected auto"},
        BadFlags{{"--prefetch", "0"}, "--prefetch 0: expected"},
        BadFlags{{"--bucket-mb", "0"}, "--bucket-mb 0: expected"},
        BadFlags{{"--seed", "-1"}, "--seed"},
        BadFlags{{"--seed", "18446744073709551616"}, "2^64 - 1"},
        BadFlags{{"--lr-schedule", "linear"}, "choose one of constant, step, cosine"},
        BadFlags{{"--lr-schedule", "step"}, "--lr-milestones"},
        BadFlags{{"--lr-schedule", "step", "--lr-milestones", "1,x"}, "--lr-milestones 1,x"},
        BadFlags{{"--lr-milestones", "1"}, "--lr-schedule step"},
        BadFlags{{"--warmup-epochs", "-1"}, "--warmup-epochs -1"},
        BadFlags{{"--beta1", "1.5"}, "--beta1 1.5: expected"},
        BadFlags{{"--epsilon", "0"}, "--epsilon 0: expected"},
        BadFlags{{"--momentum", "0.5"}, "--optimizer momentum"},
        BadFlags{{"--devices", "cuda:x"}, "no such device"},
        BadFlags{{"--devices", "cuda:0,cpu"}, "no such device"},
        BadFlags{{"--devices", "tpu"}, "; expected cpu, cuda (the GPUs of this task)"},
        BadFlags{{"--devices", "gpu"}, "did you mean 'cuda'"},
        BadFlags{{"--devices", "gpu:0,1"}, "did you mean 'cuda:0,cuda:1'"},
        BadFlags{{"--devices", "/GPU:0,/GPU:1"}, "did you mean 'cuda:0,cuda:1'"},
        BadFlags{{"--devices", ""}, "--devices '': no such device"},
        BadFlags{{"--nproc_per_node=2"}, "did you mean 'syncopate launch --workers N"},
        BadFlags{{"-np", "2"}, "did you mean 'syncopate launch --workers N"},
        BadFlags{{"--model", ""}, "--model '': no such name; choose one of"},
        BadFlags{{"--data", "imagenet"}, "no such data set; choose one of digits, shapes"},
        BadFlags{{"--replicas", "2"}, "one-device has one replica"},
        BadFlags{{"--replicas", "0"}, "--replicas 0: expected"},
        BadFlags{{"--precision", "bf16"}, "choose f32"},
        BadFlags{{"--precision", "f8"}, "no such name"},
        BadFlags{{"--augment", "rotate"}, "crop-flip"}, BadFlags{{"--resume"}, "--checkpoint-dir"},
        BadFlags{{"--checkpoint-dir", "d", "--checkpoint-every", "0"},
                 "--checkpoint-every 0: expected"},
        BadFlags{{"--checkpoint-dir", "d", "--keep-checkpoints", "0"},
                 "--keep-checkpoints 0: expected"},
        BadFlags{{"--config", "/nonexistent.ini"}, "/nonexistent.ini"}));

TEST(Replicas, AreCountedAgainstCpusOnlyWhereTheyComputeOnThem) {
  const Arguments many = {"--strategy", "mirrored", "--replicas", "1024"};
  EXPECT_TRUE(
      contains(error_of(many), "--replicas 1024", "this process may use ", "--share-devices"));
  EXPECT_EQ(error_of(as_words(many, "--devices cuda")), "");
}

TEST(CommandLine, NamesTheCommandsWhenOneIsUnknown) {
  EXPECT_TRUE(contains(message_of<UsageError>([&] { parse({"trian"}); }), "did you mean 'train'"));
  EXPECT_TRUE(contains(message_of<UsageError>([&] { parse({"serv"}); }), "did you mean 'serve'"));
}

TEST(DataFlag, SuggestsTheDataSetOfAFolderOfPictures) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "cat");
  EXPECT_TRUE(contains(error_of({"--data", folder.path()}), "did you mean images:"));
}

TEST(CommandLine, ShowsTheHelpOfACommandForTheWordHelpBeforeIt) {
  const auto help = [](const Arguments& words) { return std::get<TextOptions>(parse(words)).text; };
  EXPECT_EQ(help({"help", "serve"}), help({"serve", "--help"}));
}

TEST(CommandLine, WithoutACommandIsAnErrorThatListsTheCommands) {
  const auto text = std::get<TextOptions>(parse({}));
  EXPECT_TRUE(text.is_error);
  EXPECT_EQ(text.text, std::get<TextOptions>(parse({"--help"})).text);
}

TEST(CommandLine, HelpOfTrainShowsEveryTableAndDefault) {
  const std::string help = std::get<TextOptions>(parse({"train", "--help"})).text;
  for (const char* expected : {"--learning-rate", "one-device", "resnet56", "adamw", "mnist:DIR",
                               "synthetic:CxHxW:CLASSES", "--no-progress", "(default: 64)", "75"}) {
    EXPECT_TRUE(contains(help, expected)) << expected << " is not in\n" << help;
  }
}

TEST(CommandLine, TakesMilestonesWithBlanksBehindTheirCommas) {
  const auto options = std::get<TrainOptions>(
      parse({"train", "--lr-schedule", "step", "--lr-milestones", "3, 5.5"}));
  EXPECT_EQ(options.schedule.milestones, (std::vector<double>{3.0, 5.5}));
}

TEST(CommandLine, EvaluateNeedsACheckpoint) {
  EXPECT_THROW(parse({"evaluate"}), UsageError);
  const auto options =
      std::get<EvaluateOptions>(parse({"evaluate", "--checkpoint", "c", "--json"}));
  EXPECT_EQ(options.checkpoint, "c");
  EXPECT_TRUE(options.json);
}

TEST(CommandLine, EvaluateTakesNetworkDataAndSeedFromTheCheckpointUnlessTheyAreGiven) {
  const auto of_file = std::get<EvaluateOptions>(parse({"evaluate", "--checkpoint", "c"}));
  EXPECT_EQ(of_file.model, "");
  EXPECT_EQ(of_file.data, "");
  EXPECT_EQ(of_file.seed, std::nullopt);
  const auto given = std::get<EvaluateOptions>(
      parse(as_words("evaluate --checkpoint c --model mlp --data digits --seed 0")));
  EXPECT_EQ(given.model, "mlp");
  EXPECT_EQ(given.data, "digits");
  EXPECT_EQ(given.seed, 0U);
}

TEST(CommandLine, EvaluateShowsAsDefaultsWhatTheCheckpointRecords) {
  const std::string help = std::get<TextOptions>(parse({"evaluate", "--help"})).text;
  for (const char* const flag :
       {"--model", "--head", "--normalize", "--data", "--seed", "--image-size", "--exif",
        "--skip-bad-records", "--image-feature", "--label-feature", "--raw-shape"}) {
    const std::size_t begin = help.find(std::string("  ") + flag);
    std::istringstream lines(help.substr(begin, help.find("\n  --", begin) - begin));
    std::string text;
    for (std::string word; lines >> word;) text += word + " ";
    EXPECT_TRUE(contains(text, "(default: the value in the checkpoint)")) << text;
  }
}

TEST(CommandLine, EvaluateTakesInputThreadsAsTrainDoes) {
  const auto parsed = [](const std::string& threads) {
    return std::get<EvaluateOptions>(
        parse({"evaluate", "--checkpoint", "c", "--input-threads", threads}));
  };
  EXPECT_TRUE(parsed("auto").tunes_readers("digits"));
  EXPECT_FALSE(parsed("3").tunes_readers("tfds:DIR"));
  const auto without = std::get<EvaluateOptions>(parse({"evaluate", "--checkpoint", "c"}));
  EXPECT_TRUE(without.tunes_readers("tfds:DIR"));
  EXPECT_FALSE(without.tunes_readers("digits"));
  EXPECT_EQ(parsed("3").input_threads, 3);
  EXPECT_THROW(parsed("0"), UsageError);
}

TEST(CacheFolder, FollowsTheEnvironmentInThisOrder) {
  using Variables = std::map<std::string, std::string, std::less<>>;
  Variables variables{{"SYNCOPATE_CACHE_DIR", "/a"}, {"XDG_CACHE_HOME", "/b"}, {"HOME", "/c"}};
  EXPECT_EQ(default_cache_dir(Environment(variables)), "/a");
  variables["SYNCOPATE_CACHE_DIR"] = "";
  EXPECT_EQ(default_cache_dir(Environment(variables)), "/b/syncopate");
  variables.erase("XDG_CACHE_HOME");
  EXPECT_EQ(default_cache_dir(Environment(variables)), "/c/.cache/syncopate");
}

}  // namespace
}  // namespace syncopate
