// The frontend in one include.
#pragma once

#include "frontend/context.h"
#include "frontend/data/dataset.h"
#include "frontend/data/npy.h"
#include "frontend/generator.h"
#include "frontend/jit.h"
#include "frontend/jvp.h"
#include "frontend/nn/cell.h"
#include "frontend/nn/initializer.h"
#include "frontend/nn/layers.h"
#include "frontend/nn/loss.h"
#include "frontend/nn/optimizer.h"
#include "frontend/ops.h"
#include "frontend/sink.h"
#include "frontend/state/checkpoint.h"
#include "frontend/vjp.h"
