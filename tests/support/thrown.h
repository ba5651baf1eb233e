// Returns the message of an error that a test expects.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace syncopate {

// Returns the message of the ErrorType that `call` throws; "" if it throws nothing. An exception of
// another type is passed on, and so fails the test.
template <typename ErrorType, typename Call>
std::string message_if_thrown(const Call& call) {
  try {
    call();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "";
}

// Does the same, but the test fails if nothing is thrown.
template <typename ErrorType, typename Call>
std::string message_of(const Call& call) {
  std::string message = message_if_thrown<ErrorType>(call);
  if (message.empty()) ADD_FAILURE() << "nothing was thrown";
  return message;
}

}  // namespace syncopate
