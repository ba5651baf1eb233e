// Tests the rows of the operations.
#include "models/graph/operation_row.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace syncopate {
namespace {

template <std::size_t... kIndices>
std::vector<Operation> one_of_each(std::index_sequence<kIndices...> /*indices*/) {
  return {Operation(std::in_place_index<kIndices>)...};
}

TEST(OperationRows, HaveEveryOperation) {
  std::vector<Operation> operations =
      one_of_each(std::make_index_sequence<std::variant_size_v<Operation>>());
  for (int kind = 0; kind <= static_cast<int>(Activation::kLinear); ++kind) {
    operations.emplace_back(ActivationOp{.kind = static_cast<Activation>(kind)});
  }
  for (int kind = 0; kind <= static_cast<int>(LossKind::kLaterStages); ++kind) {
    operations.emplace_back(LossOp{.kind = static_cast<LossKind>(kind)});
  }
  for (const Operation& operation : operations) {
    EXPECT_EQ(row_of(operation).defaults.index(), operation.index());
  }
}

TEST(OperationRows, HaveNamesThatDiffer) {
  std::set<std::string_view> names;
  for (const OperationRow& row : operation_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
}

// A reader and a writer use the fields of one list.
TEST(OperationRows, ListTheFieldsOfADraft) {
  NodeDraft node{.operation = MaxPoolOp{.window = 5}};
  const std::vector<Field> fields = row_of(node.operation).fields(node);
  ASSERT_EQ(fields.size(), 3U);
  EXPECT_STREQ(fields[0].key, "window");
  *std::get<WholeField>(fields[0].value).value = 7;
  EXPECT_EQ(std::get<MaxPoolOp>(node.operation).window, 7);
}

TEST(OperationRows, CountTheMultiplyAddsOfAForwardPass) {
  GraphBuilder build("counted");
  const NodeId x = build.input({5, 4, 6}, {});
  const NodeId conv = build.conv2d(x, "conv", 8, {.groups = 2});
  const NodeId up = build.conv_transpose2d(conv, "up", 3, {.kernel_h = 2, .kernel_w = 2});
  const Graph graph = build.finish(build.dense(build.flatten(build.relu(up)), "fc", 7));
  const auto count = [&](NodeId id) {
    return multiply_adds_of(graph, graph.nodes[static_cast<std::size_t>(id)]);
  };
  EXPECT_EQ(count(conv), 8 * 3 * 3 * 3 * (3 * 2));
  EXPECT_EQ(count(up), 8 * 2 * 2 * 3 * (3 * 2));
  EXPECT_EQ(count(up + 1), 0);
  EXPECT_EQ(count(up + 3), 6 * 4 * 3 * 7);
}

}  // namespace
}  // namespace syncopate
