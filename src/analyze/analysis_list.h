/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of analyses. analysis.h declares their functions, analysis.c their options.
 */
#ifndef OPS_ANALYZE_ANALYSIS_LIST_H
#define OPS_ANALYZE_ANALYSIS_LIST_H

/* One entry per analysis, in the order of the manual. The last argument is the reason why it takes no filter; NULL: it
 * takes one. */
#define ANALYSES(X) \
	X("discovery", RANKS, ANY_EVENTS, no_options, analysis_discovery, "which file belongs to which rank", \
	  "it lists files and reads no events") \
	X("parse", RANKS, ANY_EVENTS, no_options, analysis_parse, "what a trace contains", \
	  "it describes complete files; 'load' describes what a filter selects") \
	X("load", RANKS, ANY_EVENTS, no_options, analysis_load, "what the step filter keeps", NULL) \
	X("events", RANKS, ANY_EVENTS, ranks_options, analysis_events, "the events that the filters keep", NULL) \
	X("profiler_steps", RANKS, ANY_EVENTS, no_options, analysis_profiler_steps, "the steps that the step filter keeps", NULL) \
	X("temporal_breakdown", RANKS, DEVICE_WORK, no_options, analysis_temporal_breakdown, \
	  "how long GPUs compute, do other work, and are idle", NULL) \
	X("gpu_kernel_breakdown.by_type", RANKS, DEVICE_WORK, kernel_type_options, analysis_kernels_by_type, \
	  "how long GPUs compute, communicate and copy, with overlaps", NULL) \
	X("gpu_kernel_breakdown.by_kernel", RANKS, DEVICE_WORK, kernel_options, analysis_kernels_by_name, \
	  "the kernels that take most time", NULL) \
	X("comm_comp_overlap", RANKS, DEVICE_WORK, no_options, analysis_comm_comp_overlap, \
	  "how much communication overlaps computation", NULL) \
	X("idle_time_breakdown", RANKS, DEVICE_WORK, idle_options, analysis_idle_time, \
	  "why streams are idle: waiting for the host or another kernel", NULL) \
	X("idle_time_breakdown.interval_stats", RANKS, DEVICE_WORK, idle_options, analysis_idle_intervals, \
	  "statistics of the idle intervals of streams", NULL) \
	X("cuda_kernel_launch_stats", RANKS, DEVICE_WORK, launch_options, analysis_launch_stats, \
	  "how long launch calls and launch delays take", NULL) \
	X("queue_length_summary", RANKS, DEVICE_WORK, ranks_options, analysis_queue_summary, \
	  "how many kernels and copies wait on each stream", NULL) \
	X("queue_length_time_series", RANKS, DEVICE_WORK, series_options, analysis_queue_series, \
	  "the queue length of each stream over time", NULL) \
	X("time_blocked_on_full_queue", RANKS, DEVICE_WORK, full_options, analysis_full_queue, \
	  "how long launch queues were full", NULL) \
	X("memory_bw_summary", RANKS, DEVICE_WORK, ranks_options, analysis_memory_summary, \
	  "bandwidth of memory copies and sets", NULL) \
	X("memory_bw_time_series", RANKS, DEVICE_WORK, series_options, analysis_memory_series, \
	  "bandwidth of memory copies and sets over time", NULL) \
	X("trace_with_counters", RANKS, DEVICE_WORK, counter_options, analysis_counter_trace, \
	  "write the traces with queue length and bandwidth as counters", NULL) \
	X("user_annotation_breakdown", RANKS, ANY_EVENTS, annotation_options, analysis_user_annotations, \
	  "the annotations that take most time", NULL) \
	X("gpu_kernels_with_user_annotations", RANKS, DEVICE_WORK, annotated_options, analysis_annotated_kernels, \
	  "time of device work under each annotation", NULL)

/* Analyses of several traces, and of files other than traces. */
#define MORE_ANALYSES(X)                                                                           \
	X("info", FILES, ANY_EVENTS, info_options, analysis_info, "what a trace contains and where it was recorded", \
	  "it describes complete files; 'load' describes what a filter selects") \
	X("validate", FILES, ANY_EVENTS, no_options, analysis_validate, "errors in a trace file", \
	  "it checks complete files") \
	X("key_averages", FILES, ANY_EVENTS, averages_options, analysis_key_averages, \
	  "averages by name, as in torch's table", \
	  "it sums complete traces, as torch does; 'opstrobe cut' extracts steps") \
	X("threads", FILES, ANY_EVENTS, no_options, analysis_threads, "how long each thread ran, and what it waited for", \
	  "it sums the samples of complete recordings; 'opstrobe cut' extracts steps") \
	X("data_flow", FILES, ANY_EVENTS, no_options, analysis_data_flow, "what operators make, and how much of it is read", \
	  "it follows memory through complete recordings; 'opstrobe cut' extracts steps") \
	X("potential_stragglers", RANKS, ANY_EVENTS, straggler_options, analysis_potential_stragglers, \
	  "ranks that other ranks wait for", NULL) \
	X("trace_diff.iterations", PAIR, ANY_EVENTS, no_options, analysis_diff_iterations, \
	  "the steps of two traces", NULL) \
	X("trace_diff.compare", PAIR, ANY_EVENTS, compare_options, analysis_diff_compare, \
	  "what runs more often or longer in one of the two traces", NULL) \
	X("trace_diff.ops_diff", PAIR, ANY_EVENTS, diff_options, analysis_diff_ops, \
	  "names that are added, removed, or run more or less often", NULL) \
	X("cupti_counters", RANKS, DEVICE_WORK, ranks_options, analysis_cupti_counters, \
	  "hardware counters of kernels, with their operators", NULL) \
	X("roofline", RANKS, DEVICE_WORK, ranks_options, analysis_roofline, \
	  "operations and memory traffic of kernels, from counters", NULL) \
	X("nccl_collectives", RANKS, DEVICE_WORK, collectives_options, analysis_nccl_collectives, \
	  "collective operations of each rank", NULL) \
	X("collective_bandwidth", RANKS, ANY_EVENTS, no_options, analysis_collective_bandwidth, \
	  "bandwidth of collective operations, and skew between ranks", NULL) \
	X("memory_timeline", FILES, OTHER_FILES, memory_options, analysis_memory_timeline, \
	  "memory of each category over time", \
	  "its files have no events") \
	X("execution_trace", FILES, OTHER_FILES, execution_options, analysis_execution_trace, \
	  "operators and their nodes in an execution trace", \
	  "it checks whether two complete files belong to one run") \
	X("aten_op_kernels_and_delay", RANKS, DEVICE_WORK, operator_launches_options, analysis_operator_launches, \
	  "the kernels that operators launch, and their launch delays", NULL) \
	X("call_graph", RANKS, ANY_EVENTS, call_graph_options, analysis_call_graph, "the call tree, with the device work of each call", NULL) \
	X("frequent_cuda_kernel_sequences", RANKS, DEVICE_WORK, kernel_sequences_options, analysis_kernel_sequences, \
	  "sequences of kernels that an operator often launches", NULL) \
	X("module_kernels", RANKS, DEVICE_WORK, module_kernels_options, analysis_module_kernels, \
	  "the device work of each call of a module", NULL) \
	X("critical_path", RANKS, ANY_EVENTS, critical_path_options, analysis_critical_path, "the events that determine the duration of a step", NULL) \
	X("whatif", RANKS, ANY_EVENTS, whatif_options, analysis_whatif, "how long steps would take if something took another time", \
	  "it replays complete traces; 'opstrobe cut' extracts steps")

/* Tables and pages of complete traces, which have their own commands; and whether they have the option `rules`. */
#define TABLES(X) \
	X("overview", RANKS, true, no_options, analysis_overview, "the average step, each step, operators and kernels") \
	X("kernels", RANKS, true, kernels_options, analysis_kernels, "kernels by name, largest total time first") \
	X("modules", RANKS, false, modules_options, analysis_modules, "time, FLOPs and memory of each torch.nn.Module") \
	X("memory", RANKS, false, peak_options, analysis_memory, "who holds memory at the peak of each device") \
	X("lines", RANKS, false, no_options, analysis_lines, "what each source line of the program costs") \
	X("operator_roofline", RANKS, false, roofline_options, analysis_operator_roofline, \
	  "how near operators are to what the machine can do") \
	X("diff", PAIR, true, gate_options, analysis_diff, "steps, modules, operators and kernels of two traces, before and after") \
	X("advise", RANKS, false, no_options, analysis_advise, "what to change in the program, and the predicted gain") \
	X("rules", NOTHING, false, no_options, analysis_rules, "the rules of advise") \
	X("views", RANKS, true, no_options, analysis_views, "all views of each trace and of the run as one JSON object, or a page of text")

#endif
