// What every page of ours is made of: the frame, a list of facts, a table that scrolls by itself.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "bench/compare/report/table.h"

namespace syncopate::bench {

// A whole page that asks nothing of the network. title: plain; more_style: CSS behind the common
// sheet; body: HTML below the heading.
std::string html_document(std::string_view title, std::string_view more_style,
                          std::string_view body);
// A line of a <dl>. name: plain; html: HTML.
std::string fact_html(std::string_view name, std::string_view html);
// rows: <tr> elements.
std::string table_html(std::span<const TableHead> heads, std::string_view rows);

}  // namespace syncopate::bench
