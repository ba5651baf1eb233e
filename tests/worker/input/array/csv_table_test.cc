#include "worker/input/array/csv_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/array/memory_stream.h"
#include "tests/worker/input/packed_files.h"

namespace syncopate {
namespace {

CsvTable read(std::string_view text, const CsvOptions& options = {},
              const std::string& path = "t.csv") {
  MemoryStream stream(text);
  return read_csv(stream, path, options);
}

std::string error_of(std::string_view text, const CsvOptions& options = {},
                     const std::string& path = "t.csv") {
  return message_of<Error>([&] { read(text, options, path); });
}

// Returns what a shell command prints.
std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  for (int letter = pipe == nullptr ? EOF : std::fgetc(pipe); letter != EOF;
       letter = std::fgetc(pipe)) {
    text += static_cast<char>(letter);
  }
  if (pipe != nullptr) ::pclose(pipe);
  return text;
}

// Returns the command between two texts of a message.
std::string command_in(const std::string& message, const std::string& before,
                       const std::string& behind) {
  const std::size_t begin = message.find(before) + before.size();
  return message.substr(begin, message.find(behind, begin) - begin);
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

TEST(CsvTable, AsksInAnyCaseAndForOtherNamesOfLabels) {
  for (const std::string name :
       {"Label", "CLASS", "Target", "y", "Y", "species", "class_id", "labelId", "isLabel",
        "Survived", "quality", "classID", "IDClass", "yTrue", "label1"}) {
    EXPECT_EQ(error_of(name + ",f1,f2\n0,1,2\n"),
              "--data csv:t.csv: the labels are the last column, 'f2', and the header has '" +
                  name + "', too; give csv:t.csv:" + name + " or csv:t.csv:f2");
  }
  EXPECT_EQ(read("Label,f1\n3,1\n", {.label_column = "Label"}).targets.labels, (Labels{3}));
  // A last column that has such a name, too, is the label: points have the columns x, y.
  EXPECT_EQ(read("x,y,label\n1,2,3\n").targets.labels, (Labels{3}));
  EXPECT_EQ(read("x,y,Species\n1,2,3\n").targets.labels, (Labels{3}));
  EXPECT_EQ(read("density,subclassed,x\n1,2,3\n").targets.labels, (Labels{3}));
  EXPECT_EQ(read("myLabels2d,yaxis,x1y1\n1,2,3\n", {.label_column = "3"}).targets.labels,
            (Labels{3}));
  EXPECT_TRUE(contains(error_of("class,x,label\n1,2,3\n"), "give csv:t.csv:class"));
}

TEST(CsvTable, AsksWhichOfTwoPossibleColumnsHasTheLabels) {
  EXPECT_EQ(error_of("y_true,f1,y_pred\n0,1,2\n"),
            "--data csv:t.csv: the labels are the last column, 'y_pred', and the header has "
            "'y_true', too; give csv:t.csv:y_true or csv:t.csv:y_pred");
  for (const char* header : {"y,f1,species", "class_id,f1,y", "target1,f1,target2"}) {
    EXPECT_TRUE(
        contains(error_of(std::string(header) + "\n0,1,2\n"), "the labels are the last column"))
        << header;
  }
  EXPECT_EQ(read("Y,X,classId\n1,2,3\n").targets.labels, (Labels{3}));  // the Y is that of a point
  EXPECT_EQ(read("y_true,y_pred,label\n1,2,3\n").targets.labels, (Labels{3}));
}

TEST(CsvTable, LeavesOutColumnsWithoutNames) {
  for (const std::string name : {"", "\"\"", "Unnamed: 0"}) {
    const CsvTable table = read(name + ",a,label\n0,5,1\nrow two,6,0\n");
    EXPECT_EQ(table.num_features, 1);
    EXPECT_EQ(table.features, (Features{5, 6}));
    EXPECT_EQ(table.targets.labels, (Labels{1, 0}));
    EXPECT_EQ(table.columns, (std::vector<std::string>{"a"}));
    ASSERT_EQ(table.notes.size(), 1U);
    EXPECT_TRUE(table.notes[0].starts_with("t.csv: field 1 (")) << table.notes[0];
    EXPECT_TRUE(contains(table.notes[0], "has no name and is left out"));
  }
  // A comma at the end of every line.
  EXPECT_EQ(read("a,label,\n5,1,\n").targets.labels, (Labels{1}));
  // The user named it.
  EXPECT_EQ(read(",a\n3,5\n", {.label_column = "1"}).targets.labels, (Labels{3}));
  const CsvTable numbers = read(",a,b,price\n0,5,6,7.5\n", {.target_columns = {"price"}});
  EXPECT_EQ(numbers.features, (Features{5, 6}));
  EXPECT_EQ(numbers.targets.numbers, (Features{7.5}));
}

TEST(CsvTable, TakesNumbersAndWordsThatCountTheColumnsForAHeader) {
  for (const std::string header : {"0,1,label", "1,2,label", ",0,label", "label,0,1"}) {
    const CsvTable table = read(header + "\n0,5,1\n", {.label_column = "label"});
    EXPECT_EQ(table.targets.size(), 1) << header;
    EXPECT_EQ(table.columns.back(), header == "label,0,1"  ? "1"
                                    : header == ",0,label" ? "0"
                                                           : table.columns.back());
  }
  EXPECT_EQ(read("0,1,2,target\n5,6,7,1\n").targets.labels, (Labels{1}));
}

TEST(CsvTable, RefusesAFirstLineThatMayBeAHeaderOfNumbers) {
  const std::string error = error_of("0,1,2,3\n5,6,7,1\n");
  EXPECT_EQ(error,
            "t.csv: line 1 counts the columns, 0,1,2,3, as a header of numbers does; if it is a "
            "header, remove it: sed 1d 't.csv' > NEW.csv; if it is a sample, put names before it: "
            "sed '1{h;s/[0-9][0-9]*/c&/g;G}' 't.csv' > NEW.csv");
  for (const char* header : {"0,1", "0,1,2", "1,2,3", "2019,2020,2021,2022"}) {
    EXPECT_TRUE(contains(error_of(std::string(header) + "\n5,6,7,1\n"), "counts the columns"))
        << header;
    EXPECT_TRUE(
        contains(error_of(std::string(header) + "\n", {.target_columns = {"2"}}), "counts the"))
        << header;
  }
  EXPECT_EQ(read("1,2\n5,1\n").targets.size(), 2);
  EXPECT_EQ(read("1,0\n5,1\n").targets.size(), 2);
  EXPECT_EQ(read("0,0,1\n").targets.size(), 1);
  EXPECT_EQ(error_of("2019,2021,price\n5,6,7\n"),
            "t.csv, line 1: field 3 is 'price'; expected the number of a class, from 0 on, in this "
            "column or in another: csv:t.csv:COLUMN; if the line is a header, remove it: sed 1d "
            "'t.csv' > NEW.csv; number the words: awk -F, -v OFS=, "
            "'NF>1{if(!($3 in n))n[$3]=k++;$3=n[$3]}1' 't.csv' > NEW.csv");
}

// The first line with text is not always line 1, and the file may be packed.
TEST(CsvTable, NamesTheLineOfAHeaderOfNumbersInCommandsThatWork) {
  const TemporaryFolder folder;
  for (const std::string start : {"", "\n", "sep=,\n"}) {
    for (const std::string suffix : {"", ".gz", ".zst"}) {
      // The program reads .zst without the package that has this command.
      if (suffix == ".zst" && std::system("command -v zstdcat > /dev/null") != 0) continue;
      const std::string path = (folder.path() / ("it's.csv" + suffix)).string();
      const std::string text = start + "0,1,2,3\n5,6,7,1\n";
      const Bytes bytes(text.begin(), text.end());
      write_file(path, suffix.empty() ? bytes : suffix == ".gz" ? gzip(bytes) : zstd(bytes));
      const std::string error =
          message_of<UsageError>([&] { read_csv(*open_byte_stream(path), path, {}); });
      EXPECT_TRUE(contains(error, start.empty() ? ": line 1 counts" : ": line 2 counts"));
      const std::string header = command_in(error, "remove it: ", " > NEW.csv");
      EXPECT_EQ(output_of(header), start + "5,6,7,1\n") << header;
      const std::string sample = command_in(error, "names before it: ", " > NEW.csv");
      const std::string named = output_of(sample);
      EXPECT_EQ(named, start + "c0,c1,c2,c3\n0,1,2,3\n5,6,7,1\n") << sample;
      EXPECT_EQ(read(named).targets.labels, (Labels{3, 1}));
    }
  }
  EXPECT_TRUE(contains(error_of("\nalone,\n1,2\n"), "line 2 names one of 2 columns"));
  EXPECT_TRUE(contains(error_of("\n0,1,2,x\n5,6,7,8\n", {.target_columns = {"2"}}),
                       "sed '2s/[0-9][0-9]*/c&/g' 't.csv'"));
}

TEST(CsvTable, GivesCommandsThatUnpackAPackedFile) {
  const auto has = [](std::string_view text, const std::string& command) {
    const std::string error = error_of(text, {}, "z.csv.gz");
    EXPECT_TRUE(contains(error, ": " + command + " > NEW.csv"));
  };
  has("2019,2021,price\n", "zcat 'z.csv.gz' | sed 1d");
  has("# made by a program\n", "zcat 'z.csv.gz' | sed '/^#/d'");
  has("1\t2\n", "zcat 'z.csv.gz' | sed 's/\\t/,/g'");
  has("\xFF\xFE", "zcat 'z.csv.gz' | iconv -f UTF-16 -t UTF-8");
  const CsvTable table = read("a,id,label\n1,2,0\n", {}, "z.csv.zst");
  ASSERT_EQ(table.notes.size(), 1U);
  EXPECT_TRUE(contains(table.notes[0], "zstdcat 'z.csv.zst' | cut -d, -f2 --complement > NEW.csv"));
}

// Twelve samples of a label that is 0 or 1 and four features between -1 and 1 in no order.
std::string mixed_rows(bool with_label = true) {
  std::string text;
  for (int i = 0; i < 12; ++i) {
    text += fmt::format("0.{},-0.{},0.5{},-0.{}{}\n", i % 7, i % 5, i % 3, i % 2,
                        with_label ? fmt::format(",{}", i % 2) : "");
  }
  return text;
}

TEST(CsvTable, RefusesAFirstLineOfOtherNumbersThatDiffersFromAllLinesBelow) {
  EXPECT_EQ(error_of("400.1,410.2,420.3,430.4,440.0\n" + mixed_rows()),
            "t.csv: line 1 differs from all lines below, 400.1,410.2,420.3,430.4,440, as a header "
            "of numbers does; if it is a header, remove it: sed 1d 't.csv' > NEW.csv; if it is a "
            "sample, put names before it: sed '1{h;s/[0-9][0-9]*/c&/g;G}' 't.csv' > NEW.csv");
  for (const char* header :
       {"10,20,30,40,50", "0,1,2,4,5", "4,3,2,1,0", "400.5,410.5,420.5,9e2,0", "-4,-3,-2,-1,0"}) {
    EXPECT_TRUE(
        contains(error_of(std::string(header) + "\n" + mixed_rows()), "line 1 differs from all"))
        << header;
    EXPECT_TRUE(
        contains(error_of(std::string(header) + "\n" + mixed_rows(), {.target_columns = {"5"}}),
                 "line 1 differs from all"))
        << header;
  }
  const std::string named = "c400,c410,c420,c430,c440\n400,410,420,430,440\n" + mixed_rows();
  EXPECT_EQ(read(named).targets.size(), 13);
}

TEST(CsvTable, TakesAFirstSampleThatIsLikeOthers) {
  // An outlier, and a rare class.
  for (const char* sample : {"9,-9,9,-9,0", "0.1,-0.1,0.5,0,9"}) {
    EXPECT_EQ(read(std::string(sample) + "\n" + mixed_rows()).targets.size(), 13) << sample;
  }
  // The only one of 41 samples whose features rise.
  std::string text = "0,1,2,5,0\n";
  for (int i = 0; i < 40; ++i) {
    text += fmt::format("{},{},{},{},{}\n", i % 7, i * 3 % 7, i * 5 % 7, i * 2 % 7, i % 2);
  }
  EXPECT_EQ(read(text).targets.size(), 41);
  // All lines rise, and each has a number of its own as the target.
  std::string rising;
  for (int i = 20; i > 0; --i) rising += fmt::format("{},{},{},{}\n", i, 2 * i, 3 * i, i % 2);
  EXPECT_EQ(read(rising).targets.size(), 20);
  EXPECT_EQ(read("10,20,30,40,50\n1,0,1,0,1\n").targets.size(), 2) << "few samples say too little";
}

TEST(CsvTable, NamesAnotherColumnThatLooksLikeClasses) {
  const auto notes_of = [](const std::string& header, int first_classes, int second_classes,
                           const CsvOptions& options = {}) {
    std::string text = header;
    for (int i = 0; i < 60; ++i) {
      text += fmt::format("{},{}.5,{},{}\n", i / 4 % first_classes, i * i % 23,
                          second_classes == 0 ? i * i : i / 7 % second_classes, i % 2);
    }
    return read(text, options).notes;
  };
  using Notes = std::vector<std::string>;
  EXPECT_EQ(notes_of("", 3, 0),
            (Notes{"t.csv: the labels are field 4, the last, and field 1 looks like classes up to "
                   "2, too; if it has the labels: --data csv:t.csv:1"}));
  EXPECT_EQ(notes_of("is_spam,a,b,c\n", 2, 0, {.data = "DIR"}),
            (Notes{"t.csv: the labels are field 4 (c), the last, and field 1 (is_spam) looks like "
                   "classes up to 1, too; if it has the labels: --data csv:DIR:is_spam"}));
  EXPECT_EQ(notes_of("is_spam,a,b,label\n", 2, 0), Notes{}) << "the header names the label";
  EXPECT_EQ(notes_of("", 2, 0, {.label_column = "4"}), Notes{}) << "the user names the label";
  EXPECT_EQ(notes_of("", 2, 3), Notes{}) << "one of several features of small whole numbers";
  EXPECT_EQ(notes_of("", 7, 0), Notes{}) << "fewer than ten samples of a number";
}

TEST(CsvTable, NamesLabelsThatAreOneHot) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "t.csv").string();
  const std::string four = "0.5,1,0,0\n1,0,0,1\n1,0,1,0\n2,1,0,0\n";
  for (const std::string header : {"a,l0,l1,l2\n", ""}) {
    const std::string text = header + four + four + four;
    write_file(path, Bytes(text.begin(), text.end()));
    const CsvTable table = read(text, {}, path);
    ASSERT_EQ(table.notes.size(), 1U) << header;
    EXPECT_TRUE(
        contains(table.notes[0], " are one-hot labels, and the network learns the last of them"));
    const std::string command = command_in(table.notes[0], "column of them: ", " > NEW.csv");
    const std::string merged = "0.5,0\n1,2\n1,1\n2,0\n";
    EXPECT_EQ(output_of(command), (header.empty() ? "" : "a,label\n") + merged + merged + merged)
        << command;
  }
  std::string flags = "a,is_old,is_ill\n";
  for (int i = 0; i < 20; ++i) flags += fmt::format("{}.5,{},{}\n", i * i, i / 2 % 2, i % 2);
  EXPECT_EQ(read(flags, {.label_column = "is_ill"}).notes.size(), 0U);
}

TEST(CsvTable, AsksWhichColumnANumberThatIsANameMeans) {
  EXPECT_EQ(
      error_of("0,1,2,x\n5,6,7,8\n", {.target_columns = {"2"}}),
      "--data: target column '2' of t.csv may be field 3 (2), by its name, or field 2 (1), by "
      "its number; give the columns other names: sed '1s/[0-9][0-9]*/c&/g' 't.csv' > NEW.csv");
}

TEST(CsvTable, SaysHowToNumberClassesThatAreWords) {
  EXPECT_EQ(error_of("1,0\n1,versicolor\n"),
            "t.csv, line 2: field 2 is 'versicolor'; expected the number of a class, from 0 on, in "
            "this column or in another: csv:t.csv:COLUMN; number the words: awk -F, -v OFS=, "
            "'NF>1{if(!($2 in n))n[$2]=k++;$2=n[$2]}1' 't.csv' > NEW.csv");
  const TemporaryFolder folder;
  const auto put = [&](const char* name, const std::string& text) {
    const std::string path = (folder.path() / name).string();
    write_file(path, Bytes(text.begin(), text.end()));
    return path;
  };
  const std::string text = "a,species\r\n1,no\r\n2,\"yes\"\r\n\r\n3,no\r\n";
  const std::string path = put("train.csv", text);
  const std::string error = error_of(text, {}, path);
  const std::string command = command_in(error, "number the words: ", " > NEW.csv");
  EXPECT_EQ(read(output_of(command)).targets.labels, (Labels{0, 1, 0})) << command;
  // The files of a folder number the words alike.
  put("test.csv", "a,species\n1,yes\n");
  const std::string both = command_in(error_of(text, {.data = folder.path().string()}, path),
                                      "number the words: ", ", which writes FILE.csv.new");
  output_of(both);
  const std::string test = output_of("cat '" + folder.path().string() + "/test.csv.new'");
  const std::string train = output_of("cat '" + path + ".new'");
  EXPECT_NE(read(test).targets.labels[0], read(train).targets.labels[0]) << both << train << test;
  // A comma inside a field would break the command.
  EXPECT_FALSE(contains(error_of("1,\"a,b\"\n"), "awk"));
}

TEST(CsvTable, SaysWhatToDoAboutAFeatureThatIsNoNumber) {
  EXPECT_EQ(error_of("a,sex,label\n1,f,0\n"),
            "t.csv, line 2: field 2 (sex) is 'f'; expected a finite number; leave the column out: "
            "cut -d, -f2 --complement 't.csv' > NEW.csv, or number its words: awk -F, -v OFS=, "
            "'NR>1&&NF>1{if(!($2 in n))n[$2]=k++;$2=n[$2]}1' 't.csv' > NEW.csv");
  EXPECT_EQ(error_of("day,label\n2020-01-01,0\n"),
            "t.csv, line 2: field 1 (day) is '2020-01-01'; expected a finite number; leave the "
            "column out: cut -d, -f1 --complement 't.csv' > NEW.csv");
}

TEST(CsvTable, TakesTrueAndFalseForNumbers) {
  const CsvTable table = read("a,b,label\n1,True,False\n2,false,TRUE\n");
  EXPECT_EQ(table.features, (Features{1, 1, 2, 0}));
  EXPECT_EQ(table.targets.labels, (Labels{0, 1}));
}

TEST(CsvTable, MayHaveQuotesBlanksAndOtherEndsOfLines) {
  const CsvTable table = read("\xEF\xBB\xBF\"a, b\" ,c\r\n\r\n \"+1\" , 2\r\n3\t,4");
  EXPECT_EQ(table.columns, (std::vector<std::string>{"a, b"}));
  EXPECT_EQ(table.features, (Features{1, 3}));
  EXPECT_EQ(table.targets.labels, (Labels{2, 4}));
}

TEST(CsvTable, TakesTwoQuotesInAQuotedFieldForOne) {
  const CsvTable table = read("\"a \"\"x\"\" y\",\"\"\"\",label\n\"1\",2,0\n");
  EXPECT_EQ(table.columns, (std::vector<std::string>{"a \"x\" y", "\""}));
  EXPECT_EQ(table.features, (Features{1, 2}));
}

TEST(CsvTable, TakesEndsOfLinesInQuotedFields) {
  const CsvTable table = read("\"a\nb\",\"c,\r\nd\",label\n1,2,0\n");
  EXPECT_EQ(table.columns, (std::vector<std::string>{"a\nb", "c,\r\nd"}));
  EXPECT_EQ(table.features, (Features{1, 2}));
  // Lines are counted as an editor counts them.
  EXPECT_TRUE(error_of("\"a\nb\",label\nx,0\n").starts_with("t.csv, line 3: field 1 (a?b) is 'x'"));
}

TEST(CsvTable, MayHaveLinesThatEndWithCarriageReturns) {
  for (const std::string end : {"", "\r"}) {
    const CsvTable table = read("a,b,label\r1,2,0\r\r2,3,1" + end);
    EXPECT_EQ(table.columns, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(table.features, (Features{1, 2, 2, 3}));
    EXPECT_EQ(table.targets.labels, (Labels{0, 1}));
  }
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "1,2\r";
  EXPECT_EQ(read(text).targets.size(), 100000);
}

TEST(CsvTable, NamesLinesThatEndWithCarriageReturnsInFrontOfOthers) {
  for (const std::string text :
       {"a,b,label\r1,2,0\n2,3,1\n", "\"a\",b,label\r1,2,0\r\n2,3,1\r\n"}) {
    EXPECT_EQ(error_of(text),
              "t.csv, line 1: some lines end with CR and others with LF; expected one kind of "
              "ends; give all of them LF: tr '\\r' '\\n' < 't.csv' > NEW.csv");
  }
  std::string late;
  for (int i = 0; i < 100000; ++i) late += "1,2\r";
  EXPECT_TRUE(contains(error_of(late + "1,2\n1,2\n"), "some lines end with CR"));
  EXPECT_EQ(read("\"a\rb\",label\n1,0\n").columns, (std::vector<std::string>{"a\rb"}));
  EXPECT_EQ(read("a,label\r\r\n1,0\r\r\n").targets.labels, (Labels{0}));
}

TEST(CsvTable, GivesCommandsForLinesThatEndWithCarriageReturns) {
  const TemporaryFolder folder;
  const std::string text = "0,1,2,3\r5,6,7,1\r";
  const Bytes bytes(text.begin(), text.end());
  for (const std::string suffix : {"", ".gz"}) {
    const std::string path = (folder.path() / ("t.csv" + suffix)).string();
    write_file(path, suffix.empty() ? bytes : gzip(bytes));
    const std::string command =
        command_in(error_of(text, {}, path), "if it is a header, remove it: ", " > NEW.csv");
    EXPECT_EQ(output_of(command), "5,6,7,1\n") << command;
  }
  for (const char* wrong : {"a;b\r1;2\r", "a,b,label\r1,x,2\r", "0,1,2,x\r5,6,7,8\r", "a,b\r,2\r",
                            "a,b\r1,x\r", "# a\r1,2\r"}) {
    const std::string error = error_of(wrong, {.label_column = wrong[0] == '0' ? "2" : ""});
    EXPECT_TRUE(contains(error, ": tr '\\r' '\\n' < 't.csv' | "));
  }
  const CsvTable table = read("id,label\r1,0\r");
  ASSERT_EQ(table.notes.size(), 1U);
  EXPECT_TRUE(contains(table.notes[0], "tr '\\r' '\\n' < 't.csv' | cut"));
}

TEST(CsvTable, NamesAnotherEncodingAndHowToConvertIt) {
  using namespace std::string_view_literals;
  const auto expected = [](const std::string& encoding) {
    return "t.csv: expected text in UTF-8 or ASCII, found " + encoding + "; convert it: iconv -f " +
           encoding + " -t UTF-8 't.csv' > NEW.csv";
  };
  EXPECT_EQ(error_of("\xFF\xFE"
                     "1\0,\0"
                     "0\0\n\0"sv),
            expected("UTF-16"));
  EXPECT_EQ(error_of("\xFE\xFF\0"
                     "1\0,\0"
                     "0\0\n"sv),
            expected("UTF-16"));
  EXPECT_EQ(error_of("1\0,\0"
                     "0\0\n\0"sv),
            expected("UTF-16LE"));
  EXPECT_EQ(error_of("\0"
                     "1\0,\0"
                     "0\0\n"sv),
            expected("UTF-16BE"));
  EXPECT_EQ(error_of("\xFF\xFE\0\0"
                     "1\0\0\0"sv),
            expected("UTF-32"));
  EXPECT_TRUE(contains(error_of("PK\3\4sheet"sv), "found bytes that are no text"));
}

TEST(CsvTable, TakesLabelsThatNumPyWroteAsFloats) {
  EXPECT_EQ(read("1.0e+00,3.000000000000000000e+00\n").targets.labels, (Labels{3}));
}

TEST(CsvTable, NamesLineAndFieldOfAValueThatIsMissing) {
  EXPECT_EQ(error_of("width,class\n1,0\n\n,1\n"),
            "t.csv, line 4: field 1 (width) is empty; expected a finite number; remove such lines: "
            "awk -F, '$1~/[^ \"\\r]/' 't.csv' > NEW.csv");
  EXPECT_EQ(error_of("1,0\nNA,1\n"),
            "t.csv, line 2: field 1 is 'NA'; expected a finite number; remove such lines: awk -F, "
            "'$1!=\"NA\"' 't.csv' > NEW.csv");
  for (const char* value : {"nan", "inf", "-inf", "1e999", "1.2.3", "0x1", "1 2", "--1", "+-1"}) {
    EXPECT_TRUE(contains(error_of("1,0\n" + std::string(value) + ",1\n"), "line 2: field 1"))
        << value;
  }
  EXPECT_EQ(error_of("1e39,0\n"),
            "t.csv, line 1: field 1 is 1e39; expected a number that float32 can hold");
}

// A first line with numbers and words is a sample with a mistake, not a header.
TEST(CsvTable, DoesNotTakeASampleWithAMissingValueForAHeader) {
  EXPECT_TRUE(contains(error_of("1,NA,0\n1,2,0\n"), "line 1: field 2 is 'NA'"));
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
                  "csv:t.csv:targets=2");
  }
}

TEST(CsvTable, SaysWhatSeparatesTheFieldsOfAnotherFile) {
  EXPECT_TRUE(contains(error_of("1;2;0\n"), "line 1: no comma, but ';'"));
  EXPECT_TRUE(contains(error_of("1\t2\n"), "no comma, but 'a tab'"));
  EXPECT_TRUE(contains(error_of("1|2\n"), "no comma, but '|'", "sed 's/|/,/g' 't.csv'"));
  EXPECT_TRUE(contains(error_of("\"a\";\"b, c\"\n"), "line 1: no comma, but ';'"));
  EXPECT_TRUE(contains(error_of("1,5;2,5\n"), "convert the file: sed 's/,/./g; s/;/,/g' 't.csv'"));
  EXPECT_EQ(read("sep=,\n1,0\n").features, (Features{1}));
  EXPECT_TRUE(contains(error_of("# made by a program\n1,0\n"), "remove it: sed '/^#/d' 't.csv'"));
  EXPECT_TRUE(contains(error_of("1,5;2\n1\n"), "'5;2'"));
  EXPECT_EQ(error_of("a;b\n1,5;2\n"),
            "t.csv, line 1: no comma, but ';'; expected numbers separated by commas, one of them "
            "the label; convert the file: sed 's/,/./g; s/;/,/g' 't.csv' > NEW.csv");
  EXPECT_TRUE(contains(error_of("hello\n"), "line 1: no comma; expected numbers"));
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
  EXPECT_TRUE(
      contains(error_of(std::string(std::size_t{65} << 20, '1')), "line 1: longer than 64 MB"));
}

CsvTable predict_from(std::string_view text, std::string_view training_text,
                      const CsvOptions& options = {}) {
  const CsvColumns trained = parse_csv_columns(to_text(read(training_text, options).layout));
  MemoryStream stream(text);
  return read_csv_features(stream, "p.csv", trained);
}

TEST(CsvFeatures, AreThoseOfTheTrainingByName) {
  const std::string_view training = ",a,b,label\n0,1,2,0\n";
  const auto features = [&](std::string_view text) {
    return predict_from(text, training).features;
  };
  EXPECT_EQ(features(",a,b,label\n0,5,6,1\n"), (Features{5, 6}));
  EXPECT_EQ(features("a,b\n5,6\n"), (Features{5, 6}));
  EXPECT_EQ(features("b,id,a,label\n6,x,5,cat\n6,,7,\n"), (Features{5, 6, 7, 6}));
  EXPECT_EQ(message_of<UsageError>([&] { features("a,c\n1,2\n"); }),
            "p.csv: expected one column 'b', which the network was trained on, found 0; give a "
            "table with the columns a,b");
  EXPECT_EQ(message_of<FileError>([&] { features("a,b\n1,x\n"); }),
            "p.csv, line 2: field 2 (b) is 'x'; expected a finite number");
}

TEST(CsvFeatures, AreThoseAtThePlacesOfTheTrainingWithoutAHeader) {
  const std::string_view training = "1,0,2\n";
  const CsvOptions second{.label_column = "2"};
  EXPECT_EQ(predict_from("5,9,6\n", training, second).features, (Features{5, 6}));
  EXPECT_EQ(predict_from("5,6\n", training, second).features, (Features{5, 6}));
  EXPECT_EQ(predict_from("a,b,c\n5,cat,6\n", training, second).features, (Features{5, 6}));
  EXPECT_EQ(predict_from("1,2\n", "a,b,y\n1,2,0\n").features, (Features{1, 2}));
  EXPECT_EQ(predict_from("7\n8\n", "1,0\n").features, (Features{7, 8}));
  EXPECT_EQ(message_of<UsageError>([&] { predict_from("1,2,3,4\n", training, second); }),
            "p.csv: found 4 columns; expected the 2 that the network reads, or the 3 of the table "
            "that it was trained on");
}

TEST(CsvFeatures, WithoutAHeaderBeginWithALineOfNumbersAndTheNameOfAClass) {
  for (const std::string training : {"4,0,6,1\n", "a,b,c,label\n4,0,6,1\n"}) {
    EXPECT_EQ(predict_from("1,2,3,cat\n7,8,9,dog\n", training).features,
              (Features{1, 2, 3, 7, 8, 9}))
        << training;
  }
  EXPECT_EQ(predict_from("cat,0,1\n", "1,5,5\n", {.label_column = "1"}).features, (Features{0, 1}));
}

TEST(CsvFeatures, AfterAFirstLineThatMayBeAHeaderOfNumbersAreRefused) {
  const auto refusal = [](std::string_view text, std::string_view training) {
    return message_of<UsageError>([&] { predict_from(text, training); });
  };
  const std::string_view without = "4,0,6,1\n";
  EXPECT_EQ(refusal("\n0,1,2,3\n5,6,7,1\n", without),
            "p.csv: line 2 counts the columns, 0,1,2,3, as a header of numbers does; if it is a "
            "header, remove it: sed 2d 'p.csv' > NEW.csv; if it is a sample, put names before it: "
            "sed '2{h;s/[0-9][0-9]*/c&/g;G}' 'p.csv' > NEW.csv");
  for (const char* text : {"0,1,2\n5,6,7\n", "0,1,2,label\n5,6,7,1\n"}) {
    EXPECT_TRUE(contains(refusal(text, without), "line 1 counts the columns")) << text;
  }
  EXPECT_TRUE(contains(refusal("0\n7\n", "1,0\n"), "line 1 counts the columns"));
  // Names that the network was not trained on would be refused next.
  EXPECT_TRUE(contains(refusal("0,1\n5,6\n", "a,b,label\n1,2,0\n"),
                       "if it is a sample, put the header of the training before it: a,b"));
  EXPECT_TRUE(contains(refusal("0,1,2\n5,6,0\n", "a,b,label\n1,2,0\n"), "before it: a,b,label"));
  EXPECT_TRUE(contains(refusal("400,410,420,430\n" + mixed_rows(false), "1,2,3,4,0\n"),
                       "line 1 differs from all lines below, 400,410,420,430, as a header"));
  EXPECT_EQ(predict_from("c0,c1,c2,c3\n0,1,2,3\n", without).features, (Features{0, 1, 2}));
  // The numbers are those that the network was trained on.
  const std::string_view numbers = "0,1,2,label\n4,5,6,0\n";
  EXPECT_EQ(predict_from("0,1,2\n7,8,9\n", numbers).features, (Features{7, 8, 9}));
  EXPECT_EQ(predict_from("0,1,2,class\n7,8,9,1\n", numbers).features, (Features{7, 8, 9}));
}

TEST(CsvTable, IsTheSameForLinesThatCrossTheChunksOfReading) {
  std::string text;
  Features features;
  for (int i = 0; i < 100000; ++i) {
    text += std::to_string(i) + ",2\n";
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
