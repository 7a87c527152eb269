/* SPDX-License-Identifier: Apache-2.0
 *
 * A small trace of a model's calls, forward and backward.
 */
#ifndef OPS_TEST_MODULES_H
#define OPS_TEST_MODULES_H

#include <string.h>

#include "trace/builder.h"

enum { NET, LAYERS, LINEAR, RELU, SPARE, LOSS }; /* its modules, in order */

static inline uint32_t modules_string(struct ops_builder *b, const char *text)
{
	return ops_builder_string(b, text, strlen(text));
}

static inline void modules_add(struct ops_builder *b, const char *name, uint32_t number, const char *class_name,
                               const char *path, uint32_t parent, uint64_t parameters, uint64_t own)
{
	ops_builder_module(b, &(struct ops_module){
				      .name = modules_string(b, name),
				      .class_name = modules_string(b, class_name),
				      .path = modules_string(b, path),
				      .parent = parent,
				      .number = number,
				      .address = 0x1000 + own,
				      .parameter_count = parameters,
				      .parameter_bytes = parameters * 4,
				      .own_parameter_count = own,
				      .own_parameter_bytes = own * 4,
			      });
}

static inline void modules_call(struct ops_builder *b, uint32_t module, uint32_t number, const char *name, int64_t start_ns,
                                int64_t end_ns)
{
	struct ops_new_event event = {OPS_NEW_EVENT, .start_ns = start_ns, .end_ns = end_ns,
	                              .name = modules_string(b, name), .kind = OPS_EVENT_PYTHON_FUNCTION};

	event.module = module;
	event.python_module = number;
	ops_builder_event(b, &event);
}

static inline void modules_op(struct ops_builder *b, uint32_t track, const char *name, int64_t start_ns, int64_t end_ns,
                              int64_t sequence_nr, bool backward)
{
	struct ops_new_event event = {OPS_NEW_EVENT, .start_ns = start_ns, .end_ns = end_ns, .track = track,
	                              .name = modules_string(b, name), .scope = backward};

	event.sequence_nr = sequence_nr;
	event.forward_thread = backward ? 1 : 0;
	ops_builder_event(b, &event);
}

/* Rows on thread 1, in ns:
 *
 *     Net_0         0………………………………………………………………………………100        loss CrossEntropyLoss_0 110…120
 *       Linear_0      10………………40    Linear_0 70…90                    aten::nll 112…118, sequence 3
 *         aten::addmm   15…35, sequence 1
 *       ReLU_0                  50…60
 *         aten::relu            52…58, sequence 2
 *
 * On thread 2 backward nodes with what the engine runs around them: Nll 200…220, Relu 220…250, Addmm 250…300, and
 * AccumulateGrad 300…310. Net has a list of layers that is not called, and a spare layer that nobody calls. */
static inline struct ops_builder *modules_builder(void)
{
	struct ops_builder *b = ops_builder_new();

	if (!b)
		return NULL;
	ops_builder_track(b, &(struct ops_track){.pid = 9, .tid = 9, .number = 1});
	ops_builder_track(b, &(struct ops_track){.pid = 9, .tid = 10, .number = 2});
	modules_add(b, "nn.Module: Net_0", 0, "__main__.Net", "Net", OPS_NONE, 30, 0);
	modules_add(b, "", OPS_NONE, "torch.nn.modules.container.ModuleList", "layers", NET, 20, 0);
	modules_add(b, "nn.Module: Linear_0", 0, "torch.nn.modules.linear.Linear", "layers.0", LAYERS, 20, 20);
	modules_add(b, "nn.Module: ReLU_0", 0, "torch.nn.modules.activation.ReLU", "layers.\xc3\xa9\"", LAYERS, 0, 0);
	modules_add(b, "", OPS_NONE, "torch.nn.modules.linear.Linear", "spare", NET, 10, 10);
	modules_add(b, "nn.Module: CrossEntropyLoss_0", 0, "torch.nn.modules.loss.CrossEntropyLoss", "CrossEntropyLoss",
	            OPS_NONE, 0, 0);
	ops_builder_module_alias(b, &(struct ops_module_alias){LINEAR, modules_string(b, "tied")});
	ops_builder_module_alias(b, &(struct ops_module_alias){LINEAR, modules_string(b, "head.tied")});
	ops_builder_module_alias(b, &(struct ops_module_alias){RELU, modules_string(b, "act")});
	modules_call(b, NET, 0, "nn.Module: Net_0", 0, 100);
	modules_call(b, LINEAR, 0, "nn.Module: Linear_0", 10, 40);
	modules_op(b, 0, "aten::addmm", 15, 35, 1, false);
	modules_call(b, RELU, 0, "nn.Module: ReLU_0", 50, 60);
	modules_op(b, 0, "aten::relu", 52, 58, 2, false);
	modules_call(b, LINEAR, 0, "nn.Module: Linear_0", 70, 90);
	modules_call(b, LOSS, 0, "nn.Module: CrossEntropyLoss_0", 110, 120);
	modules_op(b, 0, "aten::nll", 112, 118, 3, false);
	modules_op(b, 1, "autograd::engine::evaluate_function: NllBackward0", 200, 220, 3, false);
	modules_op(b, 1, "NllBackward0", 202, 218, 3, true);
	modules_op(b, 1, "autograd::engine::evaluate_function: ReluBackward0", 220, 250, 2, false);
	modules_op(b, 1, "ReluBackward0", 222, 248, 2, true);
	modules_op(b, 1, "autograd::engine::evaluate_function: AddmmBackward0", 250, 300, 1, false);
	modules_op(b, 1, "AddmmBackward0", 252, 298, 1, true);
	modules_op(b, 1, "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 300, 310, -1, false);
	ops_builder_info(b, &(struct ops_trace_info){.start_ns = 0, .stop_ns = 400, .pid = 9});
	return b;
}

#endif
