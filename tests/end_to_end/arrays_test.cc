// Training on arrays of NumPy and on tables through the command line: the same bits under every
// synchronous strategy, after a resume and for any number of input threads; and what bad files get.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/task_results.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/worker/input/array/npy_bytes.h"

namespace syncopate::test {
namespace {

constexpr int kClasses = 4;
constexpr int kTrain = 41;  // ten batches of 4, and one sample that is left
constexpr int kTest = 9;

void write(const std::filesystem::path& path, const std::vector<std::uint8_t>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

// Returns `count` samples of `size` values: a ramp whose start is the class.
template <typename T>
std::vector<T> samples(int count, int size, int first, double step) {
  std::vector<T> values;
  for (int i = first; i < first + count; ++i) {
    for (int p = 0; p < size; ++p) {
      values.push_back(static_cast<T>(step * ((i % kClasses) * 40 + (p * 7 + i * 3) % 30)));
    }
  }
  return values;
}

std::vector<std::uint8_t> labels(int count, int first) {
  std::vector<std::uint8_t> values;
  for (int i = first; i < first + count; ++i) {
    values.push_back(static_cast<std::uint8_t>(i % kClasses));
  }
  return values;
}

// Writes the four files of a folder. sample: the shape of a sample, "6, 5".
template <typename T>
void write_arrays(const std::filesystem::path& folder, const std::string& descr,
                  const std::string& sample, int size, double step) {
  std::filesystem::create_directories(folder);
  const auto shape = [&](int count) { return "(" + std::to_string(count) + ", " + sample + ")"; };
  const auto flat = [](int count) { return "(" + std::to_string(count) + ",)"; };
  write(folder / "x_train.npy",
        npy_bytes(descr, shape(kTrain), bytes_of(samples<T>(kTrain, size, 0, step))));
  write(folder / "x_test.npy",
        npy_bytes(descr, shape(kTest), bytes_of(samples<T>(kTest, size, 100, step))));
  write(folder / "y_train.npy", npy_bytes("|u1", flat(kTrain), labels(kTrain, 0)));
  write(folder / "y_test.npy", npy_bytes("|u1", flat(kTest), labels(kTest, 100)));
}

void write_table(const std::filesystem::path& path) {
  std::ofstream file(path);
  file << "a,b,c,class\n";
  const std::vector<float> values = samples<float>(kTrain + 10, 3, 0, 1.5);
  for (int i = 0; i < kTrain + 10; ++i) {
    for (int c = 0; c < 3; ++c) file << values[static_cast<std::size_t>(3 * i + c)] << ',';
    file << i % kClasses << '\n';
  }
}

// A form of the data, and a network for it.
struct Form {
  const char* name;
  const char* model;
};
std::ostream& operator<<(std::ostream& out, const Form& form) { return out << form.name; }

class TrainingOnArrays : public testing::TestWithParam<Form> {
 protected:
  TrainingOnArrays() {
    const std::string name = GetParam().name;
    const auto folder = scratch_ / name;
    if (name == "Bytes") write_arrays<std::uint8_t>(folder, "|u1", "6, 5", 30, 1);
    if (name == "Words") write_arrays<std::uint16_t>(folder, "<u2", "8, 8, 2", 128, 300);
    if (name == "Floats") write_arrays<float>(folder, "<f4", "6", 6, 0.01);
    if (name == "Table") write_table(folder);
    data_ = (name == "Table" ? "csv:" : "npy:") + folder.string();
  }

  Arguments flags() const {
    return as_words("--model", GetParam().model, "--data", data_, "--threads 1 --no-progress");
  }
  nlohmann::json summary(const Arguments& words, const Arguments& more,
                         const std::string& batch_flag = "--batch-size") const {
    const std::string metrics = scratch_ / ("metrics-" + std::to_string(++num_runs_));
    successful(
        run_syncopate(words + flags() + more + Arguments{batch_flag, "4", "--metrics", metrics}));
    return summary_of(metrics);
  }
  std::string hash_of(const Arguments& words, const Arguments& more) const {
    return summary(words, more).at("weights_hash").get<std::string>();
  }

  TemporaryFolder scratch_;
  std::string data_;
  mutable int num_runs_ = 0;
};

const Arguments kServers =
    as_words("launch --workers 2 --servers 1 -- train --strategy parameter-server");

TEST_P(TrainingOnArrays, HasTheSameBitsUnderEverySynchronousStrategy) {
  expect_same_bits_under_synchronous_strategies(
      [this](const Arguments& where, const Arguments& what) { return hash_of(where, what); },
      {"--steps", "12"});
}

TEST_P(TrainingOnArrays, TakesEverySampleOfAnEpochOnceUnderAsynchronousWorkers) {
  for (const char* consistency : {"async", "ssp"}) {
    const auto found = summary(kServers, {"--epochs", "2", "--consistency", consistency},
                               "--batch-size-per-replica");
    EXPECT_EQ(found.at("samples"), 2 * 40) << consistency;
  }
}

TEST_P(TrainingOnArrays, HasTheSameBitsAfterAResumeAndForAnyInputThreads) {
  const Arguments train = {"train"};
  const std::string expected = hash_of(train, {"--steps", "23", "--input-threads", "1"});
  EXPECT_EQ(hash_of(train, {"--steps", "23", "--input-threads", "8"}), expected);
  const Arguments kept = {"--checkpoint-dir", scratch_ / "ck", "--resume", "--input-threads", "8"};
  for (const char* const step : {"1", "9", "10", "11", "20"}) {
    hash_of(train, kept + Arguments{"--steps", step});
  }
  EXPECT_EQ(hash_of(train, kept + Arguments{"--steps", "23"}), expected);
}

TEST_P(TrainingOnArrays, IsEvaluatedAsItsCheckpointSays) {
  const auto trained = summary({"train"}, {"--steps", "40", "--checkpoint-dir", scratch_ / "ck"});
  const ProgramResult result =
      successful(run_syncopate(as_words("evaluate --json --threads 1 --checkpoint",
                                        scratch_ / ("ck/" + names_in(scratch_ / "ck").back()))));
  EXPECT_EQ(nlohmann::json::parse(result.out).at("test_loss"), trained.at("test_loss"));
}

// Forms that predict and export read: no tables.
class PredictionOnArrays : public TrainingOnArrays {
 protected:
  std::string train_and_find_checkpoint() const {
    (void)summary({"train"}, {"--steps", "20", "--checkpoint-dir", scratch_ / "ck"});
    for (const auto& entry : std::filesystem::directory_iterator(scratch_ / "ck")) {
      if (entry.path().extension() == ".safetensors") return entry.path().string();
    }
    return "";
  }
};

TEST_P(PredictionOnArrays, HasTheAccuracyOfTheEvaluation) {
  const std::string checkpoint = train_and_find_checkpoint();
  const std::string file = data_.substr(data_.find(':') + 1) + "/x_test.npy";
  const ProgramResult evaluated =
      successful(run_syncopate({"evaluate", "--json", "--checkpoint", checkpoint}));
  const ProgramResult predicted =
      successful(run_syncopate({"predict", "--json", "--checkpoint", checkpoint, file}));
  std::istringstream lines(predicted.out);
  int num_lines = 0;
  int num_correct = 0;
  for (std::string line; std::getline(lines, line); ++num_lines) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json.at("row"), num_lines);
    double sum = 0.0;
    for (const double probability : json.at("probabilities")) sum += probability;
    EXPECT_NEAR(sum, 1.0, 1e-9);
    EXPECT_EQ(json.at("probability"),
              json.at("probabilities").at(json.at("class").get<std::size_t>()));
    if (json.at("class") == (100 + num_lines) % kClasses) ++num_correct;
  }
  EXPECT_EQ(num_lines, kTest);
  const double accuracy = nlohmann::json::parse(evaluated.out).at("test_accuracy");
  EXPECT_NEAR(static_cast<double>(num_correct) / kTest, accuracy, 1e-12);
  const ProgramResult text = run_syncopate({"predict", "--checkpoint", checkpoint, file});
  EXPECT_TRUE(contains(text.out, "x_test.npy[8]: class "));
}

TEST_P(PredictionOnArrays, IsTheSameWithExportedWeights) {
  const std::string checkpoint = train_and_find_checkpoint();
  const std::string out = scratch_ / "weights.safetensors";
  const ProgramResult exported =
      successful(run_syncopate({"export", "--checkpoint", checkpoint, out}));
  EXPECT_TRUE(contains(exported.out, "the network reads (x / "));
  const ProgramResult not_evaluated = run_syncopate({"predict", "--checkpoint", out, out});
  EXPECT_EQ(not_evaluated.exit_code, 1);
  expect_one_line(not_evaluated, {"holds weights", "--init-from"});
  // A run that begins with the exported weights and changes nothing has the same weights.
  const auto hash_of_weights = [&](const std::string& file) {
    return hash_of({"train"}, as_words("--init-from", file,
                                       "--steps 1 --optimizer sgd --learning-rate 1e-30"));
  };
  EXPECT_EQ(hash_of_weights(out), hash_of_weights(checkpoint));
  EXPECT_LT(std::filesystem::file_size(out), std::filesystem::file_size(checkpoint));
  const ProgramResult onto_itself =
      run_syncopate({"export", "--checkpoint", checkpoint, checkpoint});
  EXPECT_EQ(onto_itself.exit_code, 2);
  expect_one_line(onto_itself, {"is the checkpoint itself"});
}

TEST_P(PredictionOnArrays, RefusesSamplesOfAnotherShapeOrType) {
  const std::string checkpoint = train_and_find_checkpoint();
  const auto refused = [&](const std::string& name, const std::vector<std::uint8_t>& bytes) {
    write(scratch_ / name, bytes);
    return run_syncopate({"predict", "--checkpoint", checkpoint, scratch_ / name});
  };
  const ProgramResult shape =
      refused("a.npy", npy_bytes("|u1", "(2, 3, 3)", samples<std::uint8_t>(2, 9, 0, 1)));
  EXPECT_EQ(shape.exit_code, 2);
  expect_one_line(shape, {"a.npy: found an array [2, 3, 3] of uint8", "the network reads samples"});
  const ProgramResult cut = refused("b.npy", {1, 2, 3});
  EXPECT_EQ(cut.exit_code, 1);
  expect_one_line(cut, {"b.npy"});
  const ProgramResult missing = run_syncopate({"predict", "--checkpoint", checkpoint, "/none.npy"});
  EXPECT_EQ(missing.exit_code, 1);
  expect_one_line(missing, {"/none.npy"});
}

// Trains on a table whose rows are numbered and whose class is in front, and predicts from tables.
class PredictionOnTables : public testing::Test {
 protected:
  PredictionOnTables() {
    std::ofstream table(scratch_ / "t.csv");
    table << ",class,a,b\n";
    for (int i = 0; i < 60; ++i) {
      table << i << ',' << i % 2 << ',' << (i % 2 == 0 ? -1 : 1) * (1 + i % 5) << ',' << i % 3
            << '\n';
    }
  }
  std::string train(const std::string& columns, const std::string& model = "mlp") const {
    successful(run_syncopate(as_words(
        "train --model", model, "--data", "csv:" + (scratch_ / "t.csv").string() + columns,
        "--batch-size 8 --epochs 20 --threads 1 --no-progress --checkpoint-dir", scratch_ / "ck")));
    return scratch_ / ("ck/" + names_in(scratch_ / "ck").back());
  }
  ProgramResult predict(const std::string& checkpoint, const std::string& name,
                        const std::string& text) const {
    std::ofstream(scratch_ / name) << text;
    return run_syncopate({"predict", "--checkpoint", checkpoint, scratch_ / name});
  }

  TemporaryFolder scratch_;
};

TEST_F(PredictionOnTables, TakesTheColumnsOfTheTraining) {
  const std::string checkpoint = train(":class");
  const auto classes = [&](const std::string& name, const std::string& text) {
    const ProgramResult result = successful(predict(checkpoint, name, text));
    std::string found;
    for (std::size_t at = 0; (at = result.out.find("class ", at)) != std::string::npos; ++at) {
      found += result.out[at + 6];
    }
    return found;
  };
  EXPECT_EQ(classes("same.csv", ",class,a,b\n0,9,-4,1\n1,9,4,1\n"), "01");
  EXPECT_EQ(classes("features.csv", "b,a\n1,4\n1,-4\n2,3\n"), "101");
  EXPECT_EQ(classes("words.csv", "name,a,b,class\nx,4,1,?\n"), "1");
  EXPECT_EQ(classes("headless.txt", "4,1\n-4,1\n"), "10");
  const ProgramResult several = run_syncopate(
      {"predict", "--checkpoint", checkpoint, scratch_ / "same.csv", scratch_ / "features.csv"});
  EXPECT_TRUE(contains(several.out, "same.csv[1]: class 1", "features.csv[2]: class 1"));
  const ProgramResult absent = predict(checkpoint, "absent.csv", "a,c\n1,2\n");
  EXPECT_EQ(absent.exit_code, 2);
  expect_one_line(absent, {"absent.csv: expected one column 'b'", "found 0"});
}

TEST_F(PredictionOnTables, GivesNumbersIfTheTargetsAre) {
  const std::string data = "csv:" + (scratch_ / "t.csv").string() + ":targets=a";
  const ProgramResult refused =
      run_syncopate(as_words("train --model mlp --data", data, "--batch-size 8"));
  EXPECT_EQ(refused.exit_code, 2);
  expect_one_line(refused, {"network --model mlp --data " + data + " --json > net.json",
                            "train it: --model file:net.json"});
  const ProgramResult network =
      successful(run_syncopate(as_words("network --model mlp --data", data, "--json")));
  std::ofstream(scratch_ / "net.json") << network.out;
  const std::string checkpoint = train(":targets=a", "file:" + (scratch_ / "net.json").string());
  const ProgramResult result = successful(predict(checkpoint, "p.csv", "b,class\n1,0\n1,1\n"));
  EXPECT_TRUE(contains(result.out, "p.csv[1]: predicted "));
}

INSTANTIATE_TEST_SUITE_P(Of, PredictionOnArrays,
                         testing::Values(Form{"Bytes", "mlp"}, Form{"Words", "mnist-cnn"},
                                         Form{"Floats", "mlp"}),
                         testing::PrintToStringParamName());

INSTANTIATE_TEST_SUITE_P(Of, TrainingOnArrays,
                         testing::Values(Form{"Bytes", "mlp"}, Form{"Words", "mnist-cnn"},
                                         Form{"Floats", "mlp"}, Form{"Table", "mlp"}),
                         [](const auto& parameters) { return std::string(parameters.param.name); });

TEST(TwoLinesOfNumPy, MakeDataThatOneCommandTrainsOn) {
  const TemporaryFolder scratch;
  RunningProgram numpy(
      {"python3", "-c",
       "import numpy as np, sys; d = sys.argv[1]; y = np.arange(200) % 4\n"
       "for s in ('train', 'test'): np.save(f'{d}/x_{s}.npy', np.random.default_rng(len(s))"
       ".normal(y[:, None], 0.1, (200, 8)).astype('float32')); np.save(f'{d}/y_{s}.npy', y)",
       (scratch / ".").string()});
  const ProgramResult made = numpy.wait();
  if (made.exit_code != 0) GTEST_SKIP() << "no python3 with NumPy: " << made.err;
  successful(run_syncopate(as_words("train --no-progress --model mlp --data",
                                    "npy:" + (scratch / ".").string(),
                                    "--batch-size 20 --epochs 30 --metrics", scratch / "m.jsonl")));
  EXPECT_GT(summary_of(scratch / "m.jsonl").at("test_accuracy"), 0.95);
}

TEST(TrainingOnAFolderOfArrays, SaysFirstWhatItTrainsOn) {
  const TemporaryFolder scratch;
  write_arrays<std::uint16_t>(scratch / "data", "<u2", "6, 5", 30, 300);
  const std::string data = "npy:" + (scratch / "data").string();
  const ProgramResult result = run_syncopate(as_words(
      "train --no-progress --model mlp --data", data, "--split val=0.2 --batch-size 4 --steps 1"));
  EXPECT_TRUE(result.err.starts_with("data " + data +
                                     ": 33 training, 8 validation and 9 test samples, u16 [6, 5, "
                                     "1], 4 classes; 8 batches of 4 per epoch\nmlp, "))
      << result.err;
}

// A change that makes a folder of arrays bad, and what the program says about it.
struct Damage {
  const char* name;
  std::string file;
  std::vector<std::uint8_t> bytes;
  int exit_code;
  std::string says;
};
std::ostream& operator<<(std::ostream& out, const Damage& damage) { return out << damage.name; }

class BadArrays : public testing::TestWithParam<Damage> {};

TEST_P(BadArrays, EndTheProgramWithOneLine) {
  const TemporaryFolder scratch;
  const Damage& damage = GetParam();
  write_arrays<std::uint8_t>(scratch / "data", "|u1", "6, 5", 30, 1);
  if (damage.bytes.empty()) {
    std::filesystem::remove(scratch / ("data/" + damage.file));
  } else {
    write(scratch / ("data/" + damage.file), damage.bytes);
  }
  const ProgramResult result = run_syncopate(
      as_words("train --no-progress --model mlp --data", "npy:" + (scratch / "data").string(),
               "--steps 1 --checkpoint-dir", scratch / "ck", "--metrics", scratch / "m.jsonl"));
  EXPECT_EQ(result.exit_code, damage.exit_code) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_TRUE(contains(result.err, damage.says, damage.file));
  EXPECT_TRUE(names_in(scratch / "ck").empty());
  EXPECT_FALSE(std::filesystem::exists(scratch / "m.jsonl"));
}

const std::vector<std::uint8_t> kZeros(kTrain * 30);
std::vector<std::uint8_t> cut_by(std::vector<std::uint8_t> bytes, std::size_t count) {
  bytes.resize(bytes.size() - count);
  return bytes;
}

INSTANTIATE_TEST_SUITE_P(
    Of, BadArrays,
    testing::Values(
        Damage{"AMissingFile", "y_test.npy", {}, 2, "has no y_test.npy; expected x_train.npy"},
        Damage{"ACutFile", "x_train.npy", cut_by(npy_bytes("|u1", "(41, 6, 5)", kZeros), 1), 1,
               "cut short at byte 1357: its header announces [41, 6, 5] of uint8, 1358 bytes"},
        Damage{"AnEmptyFile", "x_test.npy", {'\n'}, 1, "no .npy file at byte 0"},
        Damage{"AnArchive", "x_test.npy", {'P', 'K', 3, 4}, 1, "it is a ZIP file, such as .npz"},
        Damage{"BigEndianLabels", "y_train.npy",
               npy_bytes(">i2", "(41,)", std::vector<std::uint8_t>(82)), 1,
               "are big-endian ('>i2'); convert it: python3 -c"},
        Damage{"FortranOrder", "x_train.npy",
               npy_file_with_text("{'descr': '|u1', 'fortran_order': True, 'shape': (41, 6, 5), }",
                                  kZeros),
               1, "in Fortran order; convert it: python3 -c"},
        Damage{"Doubles", "x_train.npy",
               npy_bytes("<f8", "(41, 30)", std::vector<std::uint8_t>(41 * 240)), 1,
               "its samples are float64; expected uint8, uint16 or float32; convert them"},
        Damage{"NegativeLabels", "y_train.npy",
               npy_bytes("|i1", "(41,)", std::vector<std::uint8_t>(41, 0xFF)), 1,
               "label 0 (byte 128) is -1; expected 0 to 99999"},
        Damage{"ALargeLabel", "y_train.npy",
               npy_bytes("<u4", "(41,)", std::vector<std::uint8_t>(164, 0x7F)), 1,
               "is 2139062143; expected 0 to 99999; number the classes from 0"},
        Damage{"FractionsAsLabels", "y_train.npy",
               npy_bytes("<f4", "(41,)", std::vector<std::uint8_t>(164)), 1,
               "y_test.npy has an integer per sample, and "},
        Damage{"FewerLabels", "y_train.npy",
               npy_bytes("|u1", "(40,)", std::vector<std::uint8_t>(40)), 1,
               "x_train.npy has 41 samples, and "},
        Damage{"OneHotLabels", "y_train.npy",
               npy_bytes("|u1", "(41, 4)", std::vector<std::uint8_t>(164)), 1,
               "if the rows are one-hot: python3 -c"},
        Damage{"OtherTestSamples", "x_test.npy",
               npy_bytes("|u1", "(9, 5, 6)", std::vector<std::uint8_t>(270)), 1,
               "expected samples of one shape and type"}),
    [](const auto& parameters) { return std::string(parameters.param.name); });

void expect_usage_error(const Arguments& arguments, int exit_code, const std::string& says) {
  const ProgramResult result = run_syncopate(Arguments{"train", "--no-progress"} + arguments);
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_TRUE(contains(result.err, says));
}

TEST(Vectors, AreRefusedByNetworksOfImagesInOneLine) {
  const TemporaryFolder scratch;
  write_arrays<float>(scratch / "data", "<f4", "6", 6, 0.01);
  const std::string data = "npy:" + (scratch / "data").string();
  expect_usage_error({"--data", (scratch / "data").string()}, 2, "did you mean " + data + "?");
  for (const char* model : {"mnist-cnn", "resnet20", "resnet50"}) {
    expect_usage_error(as_words("--model", model, "--data", data, "--batch-size 4"), 2,
                       "--model " + std::string(model) + " does not fit --data " + data);
  }
  expect_usage_error(as_words("--model mlp --data", data, "--batch-size 4 --augment crop-flip"), 2,
                     "--augment crop-flip needs images");
}

TEST(BadTables, EndTheProgramWithOneLine) {
  const TemporaryFolder scratch;
  const std::string path = scratch / "t.csv";
  const auto refuse = [&](const std::string& text, const std::string& column, int exit_code,
                          const std::string& says) {
    std::ofstream(path) << text;
    expect_usage_error({"--model", "mlp", "--data", "csv:" + path + column}, exit_code, says);
  };
  refuse("a,b\n1,0\n,1\n", "", 1, "t.csv, line 3: field 1 (a) is empty");
  expect_usage_error({"--data", path}, 2, "did you mean csv:" + path + "?");
  refuse("1,0\n2\n", "", 1, "t.csv, line 2: 1 fields; expected 2");
  refuse("1,0\n2,-1\n", "", 1, "t.csv, line 2: field 2 is the label -1");
  refuse("1;0\n", "", 1, "t.csv, line 1: no comma, but ';'");
  refuse("a,b\n1,0\n", ":c", 2, "has no label column 'c'");
  refuse("", "", 1, "t.csv: holds no samples");
  expect_usage_error({"--data", "csv:/nowhere.csv"}, 2, "there is no file or folder /nowhere.csv");
}

}  // namespace
}  // namespace syncopate::test
