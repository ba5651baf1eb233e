#include "worker/input/array/csv_table.h"

#include <gtest/gtest.h>

#include "models/base/errors.h"
#include "tests/worker/input/array/memory_stream.h"
#include "tests/worker/input/packed_files.h"

namespace syncopate {
namespace {

CsvTable read(std::string_view text, const CsvOptions& options = {}) {
  MemoryStream stream(text);
  return read_csv(stream, "t.csv", options);
}

std::string error_of(std::string_view text, const CsvOptions& options = {}) {
  return message_of<Error>([&] { read(text, options); });
}

using Features = std::vector<float>;
using Labels = std::vector<std::int32_t>;

TEST(CsvTable, HasASampleALine) {
  const CsvTable table = read("1,2.5,0\n-3,4e1,2\n");
  EXPECT_EQ(table.num_features, 2);
  EXPECT_EQ(table.features, (Features{1, 2.5, -3, 40}));
  EXPECT_EQ(table.targets.labels, (Labels{0, 2}));
  EXPECT_TRUE(table.columns.empty());
}

TEST(CsvTable, MayHaveAHeader) {
  const CsvTable table = read("width,height,class\n1,2,0\n");
  EXPECT_EQ(table.columns, (std::vector<std::string>{"width", "height"}));
  EXPECT_EQ(table.targets.labels, (Labels{0}));
}

TEST(CsvTable, FindsItsLabelsByNameOrNumber) {
  const std::string_view text = "class,width\n3,1\n";
  EXPECT_EQ(read(text, {.label_column = "class"}).targets.labels, (Labels{3}));
  EXPECT_EQ(read(text, {.label_column = "1"}).targets.labels, (Labels{3}));
  EXPECT_EQ(read(text, {.label_column = "width"}).targets.labels, (Labels{1}));
  EXPECT_EQ(read("7,8\n", {.label_column = "1"}).features, (Features{8}));
  EXPECT_EQ(message_of<UsageError>([&] { read(text, {.label_column = "clas"}); }),
            "--data: t.csv has no label column 'clas'; expected a number from 1 to 2 or a name of "
            "its header: class, width");
  EXPECT_EQ(error_of("1,2\n", {.label_column = "3"}),
            "--data: t.csv has no label column '3'; expected a number from 1 to 2");
}

// The last column has the labels, and a header that seems to say otherwise is not passed over.
TEST(CsvTable, AsksWhereAnotherColumnIsNamedLikeLabels) {
  EXPECT_EQ(
      error_of("class,width\n3,1\n"),
      "--data csv:t.csv: the labels are the last column, 'width', and the header has 'class', "
      "too; give csv:t.csv:class or csv:t.csv:width");
}

TEST(CsvTable, SaysHowToNumberClassesThatAreWords) {
  EXPECT_EQ(error_of("1,0\n1,versicolor\n"),
            "t.csv, line 2: field 2 is 'versicolor'; expected the number of a class, from 0 on; "
            "another column is named by csv:FILE:COLUMN");
}

TEST(CsvTable, MayHaveQuotesBlanksAndOtherEndsOfLines) {
  const CsvTable table = read("\xEF\xBB\xBF\"a, b\" ,c\r\n\r\n \"+1\" , 2\r\n3\t,4");
  EXPECT_EQ(table.columns, (std::vector<std::string>{"a, b"}));
  EXPECT_EQ(table.features, (Features{1, 3}));
  EXPECT_EQ(table.targets.labels, (Labels{2, 4}));
}

TEST(CsvTable, TakesLabelsThatNumPyWroteAsFloats) {
  EXPECT_EQ(read("1.0e+00,3.000000000000000000e+00\n").targets.labels, (Labels{3}));
}

TEST(CsvTable, NamesLineAndFieldOfAValueThatIsMissing) {
  EXPECT_EQ(error_of("width,class\n1,0\n\n,1\n"),
            "t.csv, line 4: field 1 (width) is empty; expected a finite number");
  EXPECT_EQ(error_of("1,0\nNA,1\n"), "t.csv, line 2: field 1 is 'NA'; expected a finite number");
  for (const char* value : {"nan", "inf", "-inf", "1e999", "1.2.3", "0x1", "1 2", "--1", "+-1"}) {
    EXPECT_NE(error_of("1,0\n" + std::string(value) + ",1\n").find("line 2: field 1"),
              std::string::npos)
        << value;
  }
  EXPECT_EQ(error_of("1e39,0\n"),
            "t.csv, line 1: field 1 is 1e39; expected a number that float32 can hold");
}

// A first line with numbers and words is a sample with a mistake, not a header.
TEST(CsvTable, DoesNotTakeASampleWithAMissingValueForAHeader) {
  EXPECT_NE(error_of("1,NA,0\n1,2,0\n").find("line 1: field 2 is 'NA'"), std::string::npos);
}

TEST(CsvTable, NamesTheLineOfAnotherNumberOfFields) {
  EXPECT_EQ(error_of("1,2,0\n1,2\n"), "t.csv, line 2: 2 fields; expected 3 as in the first line");
  EXPECT_EQ(error_of("1,0\n1,0,\n"), "t.csv, line 2: 3 fields; expected 2 as in the first line");
}

TEST(CsvTable, NamesTheLineOfALabelOutOfRange) {
  for (const char* label : {"-1", "1.5", "100000", "1e30"}) {
    EXPECT_EQ(error_of("1,0\n1," + std::string(label) + "\n"),
              "t.csv, line 2: field 2 is the label " + std::string(label) +
                  "; expected a whole number from 0 to 99999, or numbers as targets: "
                  "csv:FILE:targets=COLUMN");
  }
}

TEST(CsvTable, SaysWhatSeparatesTheFieldsOfAnotherFile) {
  EXPECT_NE(error_of("1;2;0\n").find("line 1: no comma, but ';'"), std::string::npos);
  EXPECT_NE(error_of("1\t2\n").find("no comma, but 'a tab'"), std::string::npos);
  EXPECT_NE(error_of("hello\n").find("line 1: no comma; expected numbers"), std::string::npos);
}

TEST(CsvTable, RefusesDamagedQuotes) {
  EXPECT_EQ(error_of("\"1,0\n"),
            "t.csv, line 1: field 1 starts with a quote and has no second one");
  EXPECT_EQ(error_of("1,\"0\"x\n"), "t.csv, line 1: field 2 goes on after its second quote");
}

TEST(CsvTable, RefusesAFileWithoutSamples) {
  for (const char* text : {"", "\n\r\n", "a,b\n"}) {
    EXPECT_EQ(error_of(text),
              "t.csv: holds no samples; expected a line of numbers for each sample");
  }
}

TEST(CsvTable, RefusesALineWithoutEnd) {
  EXPECT_NE(error_of(std::string(std::size_t{65} << 20, '1')).find("line 1: longer than 64 MB"),
            std::string::npos);
}

TEST(CsvTable, IsTheSameForLinesThatCrossTheChunksOfReading) {
  std::string text;
  Features features;
  for (int i = 0; i < 100000; ++i) {
    text += std::to_string(i) + ",1\n";
    features.push_back(static_cast<float>(i));
  }
  EXPECT_EQ(read(text).features, features);
}

TEST(CsvTable, ReportsProgressOfALongFile) {
  std::string text;
  while (text.size() < (std::size_t{40} << 20)) text += std::string(1000, ' ') + "1,1\n";
  std::vector<std::int64_t> reports;
  read(text, {.on_progress = [&](std::int64_t bytes) { reports.push_back(bytes); }});
  EXPECT_EQ(reports, (std::vector<std::int64_t>{16 << 20, 32 << 20}));
}

// A text file has no checksum: a cut or a flipped bit is an error that names file and line, or
// leaves whole samples of finite numbers.
TEST(CsvTable, CutOrWithAFlippedBitIsRefusedOrHasWholeSamples) {
  const std::string whole = "a,\"b\",label\r\n1.5,-2,0\r\n\r\n3e2,4,1\n";
  const auto examine = [](const std::string& text) {
    try {
      const CsvTable table = read(text);
      EXPECT_GE(table.targets.labels.size(), 1U);
      EXPECT_EQ(table.features.size(),
                table.targets.labels.size() * static_cast<std::size_t>(table.num_features));
    } catch (const FileError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("t.csv")) << error.what();
    }
  };
  for (std::size_t size = 0; size < whole.size(); ++size) examine(whole.substr(0, size));
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string text = whole;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
    examine(text);
  }
}

}  // namespace
}  // namespace syncopate
