/* SPDX-License-Identifier: Apache-2.0
 *
 * third.c: what may be concluded from a third arm.
 *
 * padded-eager runs eager operators at the padded size on fresh tensors: if it equals the graph run, neither capture nor the
 * graph path is the cause. graph-path-eager runs them over the graph path's own buffers: if it equals the graph run, the
 * replay is not the cause, and the graph path with its buffers still may be.
 */
#include <string.h>

#include "compare/diff.h"
#include "compare/third.h"
#include "verbs.h"

static const struct {
	const char *name, *text;
} conclusions[THIRD_CONCLUSIONS] = {
	[THIRD_NOT_ASKED] = { "not_asked", "" },
	[THIRD_NO_DIFFERENCE] = { "no_difference", "there is no difference to be told apart" },
	[THIRD_NOT_TOLD] = { "not_told",
			     "nothing can be concluded: each run must be comparable with the third, which must be "
			     "padded-eager or graph-path-eager, beside a run with graphs and one without" },
	[THIRD_NOT_CAPTURE] = { "not_capture",
				"capture is not the cause: eager operators at the padded size, on fresh tensors, "
				"give the bytes of the graph run; the padded size makes the difference" },
	[THIRD_NOT_PADDING] = { "not_padding",
				"the padded size is not the cause: it alone changes nothing; the graph path or "
				"its replay does" },
	[THIRD_GRAPH_PATH] = { "graph_path_not_replay",
			       "graph path, not replay: eager operators over the graph path's own "
			       "buffers give the bytes of the graph run" },
	[THIRD_REPLAY] = { "replay",
			   "replay, not graph path: eager operators over the graph path's own buffers give the bytes "
			   "of the run without graphs" },
	[THIRD_SEVERAL] = { "several", "the third run equals neither: more than one thing makes a difference" },
};

const char *third_name(enum third_conclusion conclusion)
{
	return conclusions[conclusion].name;
}

const char *third_text(enum third_conclusion conclusion)
{
	return conclusions[conclusion].text;
}

enum third_conclusion third_conclude(const struct diff *diff)
{
	const char *arm = diff->third[0] ? diff_arm(diff->third[0], 1) : NULL;
	bool padded = arm && strcmp(arm, "padded-eager") == 0, path = arm && strcmp(arm, "graph-path-eager") == 0;
	unsigned g = diff->suspect;
	int status, graph, eager;

	if (!diff->third[0])
		return THIRD_NOT_ASKED;
	status = diff_exit_status(diff);
	graph = diff_exit_status(diff->third[g]);
	eager = diff_exit_status(diff->third[!g]);
	if (status == EXIT_HOLDS)
		return THIRD_NO_DIFFERENCE;
	if (!diff->told_by_arm || !(padded || path) || status != EXIT_DIFFERS ||
	    (graph != EXIT_HOLDS && graph != EXIT_DIFFERS) || (eager != EXIT_HOLDS && eager != EXIT_DIFFERS))
		return THIRD_NOT_TOLD;
	/* Equal to both, where the two differ: by key different donations may pair. */
	if (graph == EXIT_HOLDS && eager == EXIT_HOLDS)
		return THIRD_NOT_TOLD;
	if (graph == EXIT_HOLDS)
		return padded ? THIRD_NOT_CAPTURE : THIRD_GRAPH_PATH;
	if (eager == EXIT_HOLDS)
		return padded ? THIRD_NOT_PADDING : THIRD_REPLAY;
	return THIRD_SEVERAL;
}
