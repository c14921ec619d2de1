/* What the tests of the ABI share; see abi_test.c. */
#ifndef BALLAST_ABI_TEST_H
#define BALLAST_ABI_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ballast/ballast.h"

extern int failures;
extern const ballast_api* api;

#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) {                                              \
      printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                    \
    }                                                                \
  } while (0)

void expect_ok(ballast_error* error, int line);
#define OK(call) expect_ok((call), __LINE__)

/* Expects an error of `code` whose message contains `part`. */
void expect_error(ballast_error* error, int32_t code, const char* part, int line);
#define FAILS(call, code, part) expect_error((call), (code), (part), __LINE__)

ballast_str str(const char* text);
ballast_tensor_desc f32(uint32_t rank, int64_t d0, int64_t d1);
ballast_op_call call_of(const char* name, const ballast_tensor_desc* inputs, uint64_t count);

/* abi_graph_test.c */
void test_graph(ballast_device* device, ballast_stream* stream);
void test_regions(ballast_device* device, ballast_stream* stream);
void test_print(ballast_device* device, ballast_stream* stream);
void keep_printed(void* user, ballast_str text); /* the host's print */
extern char printed[200];                        /* its user and what it was given */

#endif
