// Kernels whose body is a function that they call.
//
// PoCL makes three functions of a kernel (itself and two launchers), optimizes and emits the body
// in each, and then once more where it is asked for a binary. A body that is called is one: kernels
// take 0.6 to 0.75 of the time to compile. A call costs 50 ns for each work-group.
#pragma once

#include <string>

namespace ballast::device {

// The text with the bodies of kernels taken out that have no barrier, declare no local memory and
// ask for no more than their group's and their own number: their groups are one work-item, or their
// items do without vectors across them. Other kernels, and a text that is not understood, stay as
// they are.
std::string call_bodies(const std::string& text);

}  // namespace ballast::device
