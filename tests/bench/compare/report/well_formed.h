// Whether a text is well-formed XML, as far as a page of ours can go wrong: tags that do not close,
// attributes without quotes, markup that was not escaped.
#pragma once

#include <string>
#include <string_view>

namespace syncopate::bench {

// "", or what is wrong and where.
std::string flaw_in_xml(std::string_view text);

}  // namespace syncopate::bench
