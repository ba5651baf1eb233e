// The first line of a table, and the columns that it names: which of them has the labels, and which
// line of numbers is a header.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/array/csv_case.h"

namespace syncopate {
namespace {

TEST(CsvTable, FindsItsLabelsByNameOrNumber) {
  const std::string_view text = "class,width\n3,1\n";
  EXPECT_EQ(read_table(text, {.label_column = "class"}).targets.labels, (Labels{3}));
  EXPECT_EQ(read_table(text, {.label_column = "1"}).targets.labels, (Labels{3}));
  EXPECT_EQ(read_table(text, {.label_column = "width"}).targets.labels, (Labels{1}));
  EXPECT_EQ(read_table("7,8\n", {.label_column = "1"}).features, (Features{8}));
  EXPECT_EQ(message_of<UsageError>([&] { read_table(text, {.label_column = "clas"}); }),
            "--data: t.csv has no label column 'clas'; expected a number from 1 to 2 or a name of "
            "its header: class, width");
  EXPECT_EQ(table_error("1,2\n", {.label_column = "3"}),
            "--data: t.csv has no label column '3'; expected a number from 1 to 2");
}

// The last column has the labels, and a header that seems to say otherwise is not passed over.
TEST(CsvTable, AsksWhereAnotherColumnIsNamedLikeLabels) {
  EXPECT_EQ(
      table_error("class,width\n3,1\n"),
      "--data csv:t.csv: the labels are the last column, 'width', and the header has 'class', "
      "too; give csv:t.csv:class or csv:t.csv:width");
}

TEST(CsvTable, AsksInAnyCaseAndForOtherNamesOfLabels) {
  for (const std::string name :
       {"Label", "CLASS", "Target", "y", "Y", "species", "class_id", "labelId", "isLabel",
        "Survived", "quality", "classID", "IDClass", "yTrue", "label1"}) {
    EXPECT_EQ(table_error(name + ",f1,f2\n0,1,2\n"),
              "--data csv:t.csv: the labels are the last column, 'f2', and the header has '" +
                  name + "', too; give csv:t.csv:" + name + " or csv:t.csv:f2");
  }
  EXPECT_EQ(read_table("Label,f1\n3,1\n", {.label_column = "Label"}).targets.labels, (Labels{3}));
  // A last column that has such a name, too, is the label: points have the columns x, y.
  EXPECT_EQ(read_table("x,y,label\n1,2,3\n").targets.labels, (Labels{3}));
  EXPECT_EQ(read_table("x,y,Species\n1,2,3\n").targets.labels, (Labels{3}));
  EXPECT_EQ(read_table("density,subclassed,x\n1,2,3\n").targets.labels, (Labels{3}));
  EXPECT_EQ(read_table("myLabels2d,yaxis,x1y1\n1,2,3\n", {.label_column = "3"}).targets.labels,
            (Labels{3}));
  EXPECT_TRUE(contains(table_error("class,x,label\n1,2,3\n"), "give csv:t.csv:class"));
}

TEST(CsvTable, AsksWhichOfTwoPossibleColumnsHasTheLabels) {
  EXPECT_EQ(table_error("y_true,f1,y_pred\n0,1,2\n"),
            "--data csv:t.csv: the labels are the last column, 'y_pred', and the header has "
            "'y_true', too; give csv:t.csv:y_true or csv:t.csv:y_pred");
  for (const char* header : {"y,f1,species", "class_id,f1,y", "target1,f1,target2"}) {
    EXPECT_TRUE(
        contains(table_error(std::string(header) + "\n0,1,2\n"), "the labels are the last column"))
        << header;
  }
  EXPECT_EQ(read_table("Y,X,classId\n1,2,3\n").targets.labels,
            (Labels{3}));  // the Y is that of a point
  EXPECT_EQ(read_table("y_true,y_pred,label\n1,2,3\n").targets.labels, (Labels{3}));
}

TEST(CsvTable, LeavesOutColumnsWithoutNames) {
  for (const std::string name : {"", "\"\"", "Unnamed: 0"}) {
    const CsvTable table = read_table(name + ",a,label\n0,5,1\nrow two,6,0\n");
    EXPECT_EQ(table.num_features, 1);
    EXPECT_EQ(table.features, (Features{5, 6}));
    EXPECT_EQ(table.targets.labels, (Labels{1, 0}));
    EXPECT_EQ(table.columns, (std::vector<std::string>{"a"}));
    ASSERT_EQ(table.notes.size(), 1U);
    EXPECT_TRUE(table.notes[0].starts_with("t.csv: field 1 (")) << table.notes[0];
    EXPECT_TRUE(contains(table.notes[0], "has no name and is left out"));
  }
  // A comma at the end of every line.
  EXPECT_EQ(read_table("a,label,\n5,1,\n").targets.labels, (Labels{1}));
  // The user named it.
  EXPECT_EQ(read_table(",a\n3,5\n", {.label_column = "1"}).targets.labels, (Labels{3}));
  const CsvTable numbers = read_table(",a,b,price\n0,5,6,7.5\n", {.target_columns = {"price"}});
  EXPECT_EQ(numbers.features, (Features{5, 6}));
  EXPECT_EQ(numbers.targets.numbers, (Features{7.5}));
}

TEST(CsvTable, TakesNumbersAndWordsThatCountTheColumnsForAHeader) {
  for (const std::string header : {"0,1,label", "1,2,label", ",0,label", "label,0,1"}) {
    const CsvTable table = read_table(header + "\n0,5,1\n", {.label_column = "label"});
    EXPECT_EQ(table.targets.size(), 1) << header;
    EXPECT_EQ(table.columns.back(), header == "label,0,1"  ? "1"
                                    : header == ",0,label" ? "0"
                                                           : table.columns.back());
  }
  EXPECT_EQ(read_table("0,1,2,target\n5,6,7,1\n").targets.labels, (Labels{1}));
}

TEST(CsvTable, RefusesAFirstLineThatMayBeAHeaderOfNumbers) {
  const std::string error = table_error("0,1,2,3\n5,6,7,1\n");
  EXPECT_EQ(error,
            "t.csv: line 1 counts the columns, 0,1,2,3, as a header of numbers does; if it is a "
            "header, remove it: sed 1d 't.csv' > NEW.csv; if it is a sample, put names before it: "
            "sed '1{h;s/[0-9][0-9]*/c&/g;G}' 't.csv' > NEW.csv");
  for (const char* header : {"0,1", "0,1,2", "1,2,3", "2019,2020,2021,2022"}) {
    EXPECT_TRUE(contains(table_error(std::string(header) + "\n5,6,7,1\n"), "counts the columns"))
        << header;
    EXPECT_TRUE(
        contains(table_error(std::string(header) + "\n", {.target_columns = {"2"}}), "counts the"))
        << header;
  }
  EXPECT_EQ(read_table("1,2\n5,1\n").targets.size(), 2);
  EXPECT_EQ(read_table("1,0\n5,1\n").targets.size(), 2);
  EXPECT_EQ(read_table("0,0,1\n").targets.size(), 1);
  EXPECT_EQ(table_error("2019,2021,price\n5,6,7\n"),
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
      const Bytes bytes = text_bytes(text);
      write_file(path, suffix.empty() ? bytes : suffix == ".gz" ? gzip(bytes) : zstd(bytes));
      const std::string error =
          message_of<UsageError>([&] { read_csv(*open_byte_stream(path), path, {}); });
      EXPECT_TRUE(contains(error, start.empty() ? ": line 1 counts" : ": line 2 counts"));
      const std::string header = command_in(error, "remove it: ", " > NEW.csv");
      EXPECT_EQ(output_of(header), start + "5,6,7,1\n") << header;
      const std::string sample = command_in(error, "names before it: ", " > NEW.csv");
      const std::string named = output_of(sample);
      EXPECT_EQ(named, start + "c0,c1,c2,c3\n0,1,2,3\n5,6,7,1\n") << sample;
      EXPECT_EQ(read_table(named).targets.labels, (Labels{3, 1}));
    }
  }
  EXPECT_TRUE(contains(table_error("\nalone,\n1,2\n"), "line 2 names one of 2 columns"));
  EXPECT_TRUE(contains(table_error("\n0,1,2,x\n5,6,7,8\n", {.target_columns = {"2"}}),
                       "sed '2s/[0-9][0-9]*/c&/g' 't.csv'"));
}

TEST(CsvTable, RefusesAFirstLineOfOtherNumbersThatDiffersFromAllLinesBelow) {
  EXPECT_EQ(table_error("400.1,410.2,420.3,430.4,440.0\n" + mixed_rows()),
            "t.csv: line 1 differs from all lines below, 400.1,410.2,420.3,430.4,440, as a header "
            "of numbers does; if it is a header, remove it: sed 1d 't.csv' > NEW.csv; if it is a "
            "sample, put names before it: sed '1{h;s/[0-9][0-9]*/c&/g;G}' 't.csv' > NEW.csv");
  for (const char* header :
       {"10,20,30,40,50", "0,1,2,4,5", "4,3,2,1,0", "400.5,410.5,420.5,9e2,0", "-4,-3,-2,-1,0"}) {
    EXPECT_TRUE(
        contains(table_error(std::string(header) + "\n" + mixed_rows()), "line 1 differs from all"))
        << header;
    EXPECT_TRUE(
        contains(table_error(std::string(header) + "\n" + mixed_rows(), {.target_columns = {"5"}}),
                 "line 1 differs from all"))
        << header;
  }
  const std::string named = "c400,c410,c420,c430,c440\n400,410,420,430,440\n" + mixed_rows();
  EXPECT_EQ(read_table(named).targets.size(), 13);
}

TEST(CsvTable, TakesAFirstSampleThatIsLikeOthers) {
  // An outlier, and a rare class.
  for (const char* sample : {"9,-9,9,-9,0", "0.1,-0.1,0.5,0,9"}) {
    EXPECT_EQ(read_table(std::string(sample) + "\n" + mixed_rows()).targets.size(), 13) << sample;
  }
  // The only one of 41 samples whose features rise.
  std::string text = "0,1,2,5,0\n";
  for (int i = 0; i < 40; ++i) {
    text += fmt::format("{},{},{},{},{}\n", i % 7, i * 3 % 7, i * 5 % 7, i * 2 % 7, i % 2);
  }
  EXPECT_EQ(read_table(text).targets.size(), 41);
  // All lines rise, and each has a number of its own as the target.
  std::string rising;
  for (int i = 20; i > 0; --i) rising += fmt::format("{},{},{},{}\n", i, 2 * i, 3 * i, i % 2);
  EXPECT_EQ(read_table(rising).targets.size(), 20);
  EXPECT_EQ(read_table("10,20,30,40,50\n1,0,1,0,1\n").targets.size(), 2)
      << "few samples say too little";
}

TEST(CsvTable, NamesAnotherColumnThatLooksLikeClasses) {
  const auto notes_of = [](const std::string& header, int first_classes, int second_classes,
                           const CsvOptions& options = {}) {
    std::string text = header;
    for (int i = 0; i < 60; ++i) {
      text += fmt::format("{},{}.5,{},{}\n", i / 4 % first_classes, i * i % 23,
                          second_classes == 0 ? i * i : i / 7 % second_classes, i % 2);
    }
    return read_table(text, options).notes;
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
    write_file(path, text);
    const CsvTable table = read_table(text, {}, path);
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
  EXPECT_EQ(read_table(flags, {.label_column = "is_ill"}).notes.size(), 0U);
}

TEST(CsvTable, AsksWhichColumnANumberThatIsANameMeans) {
  EXPECT_EQ(
      table_error("0,1,2,x\n5,6,7,8\n", {.target_columns = {"2"}}),
      "--data: target column '2' of t.csv may be field 3 (2), by its name, or field 2 (1), by "
      "its number; give the columns other names: sed '1s/[0-9][0-9]*/c&/g' 't.csv' > NEW.csv");
}

// A first line with numbers and words is a sample with a mistake, not a header.
TEST(CsvTable, DoesNotTakeASampleWithAMissingValueForAHeader) {
  EXPECT_TRUE(contains(table_error("1,NA,0\n1,2,0\n"), "line 1: field 2 is 'NA'"));
}

}  // namespace
}  // namespace syncopate
