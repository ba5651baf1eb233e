// How the page looks: on a screen by day and by night, on a telephone, on paper.
#pragma once

#include <string_view>

namespace syncopate::bench {

// CSS. Colours of series are those of Okabe and Ito, which the colour-blind tell apart; on a dark
// ground the two darkest are lighter. Source: M. Okabe, K. Ito, Color Universal Design (2008).
std::string_view style_sheet();

}  // namespace syncopate::bench
