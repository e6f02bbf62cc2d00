/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.c: graphs as structure: nodes, edges, clones, and the questions about them.
 */
#include <stdlib.h>
#include <string.h>

#include "cpudriver.h"

static const struct cux_edge_data plain_edge;

/* ---- making ---- */

cu_graph graph_new(void)
{
	cu_graph graph = cpu_alloc(sizeof(*graph));

	graph->id = cpu_next_id();
	handle_add(KIND_GRAPH, graph);
	return graph;
}

static void node_free(cu_graph_node node)
{
	handle_remove(node);
	work_put(node->work);
	if (node->child)
		graph_free(node->child);
	for (unsigned i = 0; i < node->n_bodies; i++)
		graph_free(node->body[i]);
	free(node->body);
	free(node->dep);
	free(node);
}

void graph_free(cu_graph graph)
{
	handle_remove(graph);
	conditions_end(graph);
	for (size_t i = 0; i < graph->n_nodes; i++)
		node_free(graph->node[i]);
	free(graph->node);
	free(graph);
}

static cu_graph_node add_node(cu_graph graph, int type, struct work *work)
{
	cu_graph_node node = cpu_alloc(sizeof(*node));

	node->graph = graph;
	node->id = cpu_next_id();
	node->type = type;
	node->work = work;
	node->order = graph->n_nodes;
	if (graph->n_nodes == graph->room) {
		graph->room = graph->room ? graph->room * 2 : 16;
		graph->node = realloc(graph->node, graph->room * sizeof(*graph->node));
	}
	graph->node[graph->n_nodes++] = node;
	handle_add(KIND_NODE, node);
	return node;
}

/* Ports and types other than 0 are for programmatic launches: between kernels. */
static bool edge_ok(cu_graph_node from, cu_graph_node to, const struct cux_edge_data *data)
{
	if (!data || !memcmp(data, &plain_edge, sizeof(plain_edge)))
		return true;
	return data->type <= 1 && data->from_port <= 2 && !data->to_port && from->type == CU_NODE_KERNEL &&
	       to->type == CU_NODE_KERNEL;
}

cu_result graph_add_edge(cu_graph_node from, cu_graph_node to, const struct cux_edge_data *data)
{
	if (from == to || from->graph != to->graph || !edge_ok(from, to, data))
		return CU_INVALID_VALUE;
	for (size_t i = 0; i < to->n_deps; i++)
		if (to->dep[i].node == from)
			return CU_INVALID_VALUE;
	to->dep = realloc(to->dep, (to->n_deps + 1) * sizeof(*to->dep));
	to->dep[to->n_deps++] = (struct edge) { from, data ? *data : plain_edge };
	return CU_SUCCESS;
}

/* With the edges that touch it. */
static void node_remove(cu_graph_node node)
{
	cu_graph graph = node->graph;

	for (size_t i = node->order; i + 1 < graph->n_nodes; i++) {
		graph->node[i] = graph->node[i + 1];
		graph->node[i]->order = i;
	}
	graph->n_nodes--;
	for (size_t i = 0; i < graph->n_nodes; i++) {
		cu_graph_node other = graph->node[i];

		for (size_t j = 0; j < other->n_deps; j++)
			if (other->dep[j].node == node) {
				other->dep[j] = other->dep[--other->n_deps];
				break;
			}
	}
	node_free(node);
}

cu_result graph_add(cu_graph graph, const cu_graph_node *deps, const struct cux_edge_data *edges, size_t n, int type,
		    struct work *work, cu_graph_node *node)
{
	bool good = handle_is(KIND_GRAPH, graph) && (!n || deps);
	cu_graph_node made;

	for (size_t i = 0; good && i < n; i++) {
		good = handle_is(KIND_NODE, deps[i]) && deps[i]->graph == graph;
		for (size_t j = 0; good && j < i; j++)
			good = deps[j] != deps[i];
	}
	if (!good) {
		work_put(work);
		return CU_INVALID_VALUE;
	}
	made = add_node(graph, type, work);
	for (size_t i = 0; i < n; i++) {
		cu_result result = graph_add_edge(deps[i], made, edges ? &edges[i] : NULL);

		if (result) {
			node_remove(made);
			return result;
		}
	}
	*node = made; /* last: a caller may name the node before it and the place for it by one variable */
	return CU_SUCCESS;
}

cu_graph graph_clone(cu_graph graph)
{
	cu_graph clone = graph_new();

	clone->original = graph->id;
	for (size_t i = 0; i < graph->n_nodes; i++) {
		cu_graph_node from = graph->node[i], to = add_node(clone, from->type, work_ref(from->work));

		to->original = from->id;
		memcpy(to->attribute, from->attribute, sizeof(to->attribute));
		if (from->child) {
			to->child = graph_clone(from->child);
			to->child->embedded = true;
		}
	}
	for (size_t i = 0; i < graph->n_nodes; i++)
		for (size_t j = 0; j < graph->node[i]->n_deps; j++) {
			const struct edge *edge = &graph->node[i]->dep[j];

			graph_add_edge(clone->node[edge->node->order], clone->node[i], &edge->data);
		}
	return clone;
}

/* Topological, and in the order of creation as far as that leaves a choice. *n_ordered < n_nodes: there is a cycle. */
void graph_order(cu_graph graph, cu_graph_node *order, size_t *n_ordered)
{
	size_t n = 0;
	bool *placed = cpu_alloc(graph->n_nodes * sizeof(*placed));

	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < graph->n_nodes; i++) {
			cu_graph_node node = graph->node[i];
			bool ready = !placed[i];

			for (size_t j = 0; ready && j < node->n_deps; j++)
				ready = placed[node->dep[j].node->order];
			if (!ready)
				continue;
			placed[i] = true;
			order[n++] = node;
			more = true;
		}
	}
	*n_ordered = n;
	free(placed);
}

/* Is `from` among `to`, or before one of them? */
bool graph_reaches(cu_graph_node from, const struct node_set *to)
{
	cu_graph graph = from->graph;
	bool *seen = cpu_alloc(graph->n_nodes * sizeof(*seen)), found = false;
	cu_graph_node *stack = cpu_alloc((graph->n_nodes + 1) * sizeof(cu_graph_node));
	size_t depth = 0;

	for (size_t i = 0; i < to->n; i++) {
		if (!seen[to->node[i]->order])
			stack[depth++] = to->node[i];
		seen[to->node[i]->order] = true;
	}
	while (depth && !found) {
		cu_graph_node node = stack[--depth];

		found = node == from;
		for (size_t i = 0; i < node->n_deps; i++) {
			cu_graph_node before = node->dep[i].node;

			if (!seen[before->order])
				stack[depth++] = before;
			seen[before->order] = true;
		}
	}
	free(seen);
	free(stack);
	return found;
}

/* ---- the calls ---- */

cu_result cuGraphCreate(cu_graph *graph, unsigned flags)
{
	API(cuGraphCreate, NEED_INIT);
	if (!graph || flags)
		return CU_INVALID_VALUE;
	*graph = graph_new();
	return CU_SUCCESS;
}

cu_result cuGraphDestroy(cu_graph graph)
{
	API(cuGraphDestroy, NEED_INIT);
	if (!handle_is(KIND_GRAPH, graph) || graph->embedded || capture_owns(graph))
		return CU_INVALID_VALUE;
	graph_free(graph);
	return CU_SUCCESS;
}

bool graph_can_clone(cu_graph graph)
{
	for (size_t i = 0; i < graph->n_nodes; i++) {
		cu_graph_node node = graph->node[i];

		if (node->type == CU_NODE_MEM_ALLOC || node->type == CU_NODE_MEM_FREE ||
		    node->type == CU_NODE_CONDITIONAL || (node->child && !graph_can_clone(node->child)))
			return false;
	}
	return true;
}

cu_result cuGraphClone(cu_graph *clone, cu_graph graph)
{
	API(cuGraphClone, NEED_INIT);
	if (!clone || !handle_is(KIND_GRAPH, graph))
		return CU_INVALID_VALUE;
	if (!graph_can_clone(graph))
		return CU_NOT_SUPPORTED;
	*clone = graph_clone(graph);
	return CU_SUCCESS;
}

cu_result cuGraphDestroyNode(cu_graph_node node)
{
	API(cuGraphDestroyNode, NEED_INIT);
	if (!handle_is(KIND_NODE, node))
		return CU_INVALID_VALUE;
	if (capture_owns(node->graph))
		return CUX_ILLEGAL_STATE;
	if (graph_has_memory(node->graph))
		return CU_NOT_SUPPORTED;
	node_remove(node);
	return CU_SUCCESS;
}

/* The driver's way of answering with a list: without room only the number; surplus room is filled with NULL. */
struct answer {
	cu_graph_node *first, *second;
	struct cux_edge_data *edges;
	size_t room, n;
	bool lossy; /* an edge has data and nobody asked for it */
};

static void answer_add(struct answer *answer, cu_graph_node first, cu_graph_node second,
		       const struct cux_edge_data *data)
{
	size_t at = answer->n++;

	if (data && !answer->edges && memcmp(data, &plain_edge, sizeof(plain_edge)))
		answer->lossy = true;
	if (at >= answer->room)
		return;
	if (answer->first)
		answer->first[at] = first;
	if (answer->second)
		answer->second[at] = second;
	if (answer->edges)
		answer->edges[at] = *data;
}

static cu_result answer_end(struct answer *answer, size_t *n, bool with_edges)
{
	bool asked = answer->first || answer->second;

	if (!asked) {
		*n = answer->n;
		return CU_SUCCESS;
	}
	if (!answer->room)
		return CU_INVALID_VALUE;
	if (answer->lossy && !with_edges)
		return CUX_LOSSY_QUERY;
	for (size_t i = answer->n; i < answer->room; i++) {
		if (answer->first)
			answer->first[i] = NULL;
		if (answer->second)
			answer->second[i] = NULL;
	}
	*n = answer->n < answer->room ? answer->n : answer->room;
	return CU_SUCCESS;
}

static cu_result get_nodes(cu_graph graph, cu_graph_node *nodes, size_t *n, bool roots)
{
	struct answer answer = { .first = nodes };

	if (!n || !handle_is(KIND_GRAPH, graph))
		return CU_INVALID_VALUE;
	answer.room = *n;
	for (size_t i = 0; i < graph->n_nodes; i++)
		if (!roots || !graph->node[i]->n_deps)
			answer_add(&answer, graph->node[i], NULL, NULL);
	return answer_end(&answer, n, false);
}

cu_result cuGraphGetNodes(cu_graph graph, cu_graph_node *nodes, size_t *n)
{
	API(cuGraphGetNodes, NEED_INIT);
	return get_nodes(graph, nodes, n, false);
}

cu_result cuGraphGetRootNodes(cu_graph graph, cu_graph_node *nodes, size_t *n)
{
	API(cuGraphGetRootNodes, NEED_INIT);
	return get_nodes(graph, nodes, n, true);
}

static cu_result get_edges(cu_graph graph, struct answer answer, size_t *n, bool with_edges)
{
	if (!n || !handle_is(KIND_GRAPH, graph) || !answer.first != !answer.second)
		return CU_INVALID_VALUE;
	answer.room = *n;
	for (size_t i = 0; i < graph->n_nodes; i++)
		for (size_t j = 0; j < graph->node[i]->n_deps; j++)
			answer_add(&answer, graph->node[i]->dep[j].node, graph->node[i], &graph->node[i]->dep[j].data);
	return answer_end(&answer, n, with_edges);
}

cu_result cuGraphGetEdges(cu_graph graph, cu_graph_node *from, cu_graph_node *to, size_t *n)
{
	API(cuGraphGetEdges, NEED_INIT);
	return get_edges(graph, (struct answer) { .first = from, .second = to }, n, false);
}

cu_result cuGraphGetEdges_v2(cu_graph graph, cu_graph_node *from, cu_graph_node *to, struct cux_edge_data *edges,
			     size_t *n)
{
	API(cuGraphGetEdges_v2, NEED_INIT);
	return get_edges(graph, (struct answer) { .first = from, .second = to, .edges = edges }, n, edges != NULL);
}

static cu_result get_dependencies(cu_graph_node node, struct answer answer, size_t *n, bool with_edges)
{
	if (!n || !handle_is(KIND_NODE, node))
		return CU_INVALID_VALUE;
	answer.room = *n;
	for (size_t i = 0; i < node->n_deps; i++)
		answer_add(&answer, node->dep[i].node, NULL, &node->dep[i].data);
	return answer_end(&answer, n, with_edges);
}

cu_result cuGraphNodeGetDependencies(cu_graph_node node, cu_graph_node *nodes, size_t *n)
{
	API(cuGraphNodeGetDependencies, NEED_INIT);
	return get_dependencies(node, (struct answer) { .first = nodes }, n, false);
}

cu_result cuGraphNodeGetDependencies_v2(cu_graph_node node, cu_graph_node *nodes, struct cux_edge_data *edges,
					size_t *n)
{
	API(cuGraphNodeGetDependencies_v2, NEED_INIT);
	return get_dependencies(node, (struct answer) { .first = nodes, .edges = edges }, n, edges != NULL);
}

static cu_result get_dependents(cu_graph_node node, struct answer answer, size_t *n, bool with_edges)
{
	if (!n || !handle_is(KIND_NODE, node))
		return CU_INVALID_VALUE;
	answer.room = *n;
	for (size_t i = 0; i < node->graph->n_nodes; i++) {
		cu_graph_node other = node->graph->node[i];

		for (size_t j = 0; j < other->n_deps; j++)
			if (other->dep[j].node == node)
				answer_add(&answer, other, NULL, &other->dep[j].data);
	}
	return answer_end(&answer, n, with_edges);
}

cu_result cuGraphNodeGetDependentNodes(cu_graph_node node, cu_graph_node *nodes, size_t *n)
{
	API(cuGraphNodeGetDependentNodes, NEED_INIT);
	return get_dependents(node, (struct answer) { .first = nodes }, n, false);
}

cu_result cuGraphNodeGetDependentNodes_v2(cu_graph_node node, cu_graph_node *nodes, struct cux_edge_data *edges,
					  size_t *n)
{
	API(cuGraphNodeGetDependentNodes_v2, NEED_INIT);
	return get_dependents(node, (struct answer) { .first = nodes, .edges = edges }, n, edges != NULL);
}

static cu_result add_dependencies(cu_graph graph, const cu_graph_node *from, const cu_graph_node *to,
				  const struct cux_edge_data *edges, size_t n)
{
	if (!handle_is(KIND_GRAPH, graph) || (n && (!from || !to)))
		return CU_INVALID_VALUE;
	for (size_t i = 0; i < n; i++)
		if (!handle_is(KIND_NODE, from[i]) || !handle_is(KIND_NODE, to[i]) || from[i]->graph != graph)
			return CU_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		cu_result result = graph_add_edge(from[i], to[i], edges ? &edges[i] : NULL);

		if (result)
			return result;
	}
	return CU_SUCCESS;
}

cu_result cuGraphAddDependencies(cu_graph graph, const cu_graph_node *from, const cu_graph_node *to, size_t n)
{
	API(cuGraphAddDependencies, NEED_INIT);
	return add_dependencies(graph, from, to, NULL, n);
}

cu_result cuGraphAddDependencies_v2(cu_graph graph, const cu_graph_node *from, const cu_graph_node *to,
				    const struct cux_edge_data *edges, size_t n)
{
	API(cuGraphAddDependencies_v2, NEED_INIT);
	return add_dependencies(graph, from, to, edges, n);
}

static struct edge *find_edge(cu_graph_node from, cu_graph_node to)
{
	for (size_t i = 0; i < to->n_deps; i++)
		if (to->dep[i].node == from)
			return &to->dep[i];
	return NULL;
}

/* Who names data removes the edge with that data, who names none any edge. */
static cu_result remove_dependencies(cu_graph graph, const cu_graph_node *from, const cu_graph_node *to,
				     const struct cux_edge_data *edges, size_t n)
{
	if (!handle_is(KIND_GRAPH, graph) || (n && (!from || !to)))
		return CU_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		struct edge *edge;

		if (!handle_is(KIND_NODE, from[i]) || !handle_is(KIND_NODE, to[i]) || from[i]->graph != graph)
			return CU_INVALID_VALUE;
		edge = find_edge(from[i], to[i]);
		if (!edge || (edges && memcmp(&edge->data, &edges[i], sizeof(edges[i]))))
			return CU_INVALID_VALUE;
		*edge = to[i]->dep[--to[i]->n_deps];
	}
	return CU_SUCCESS;
}

cu_result cuGraphRemoveDependencies(cu_graph graph, const cu_graph_node *from, const cu_graph_node *to, size_t n)
{
	API(cuGraphRemoveDependencies, NEED_INIT);
	return remove_dependencies(graph, from, to, NULL, n);
}

cu_result cuGraphRemoveDependencies_v2(cu_graph graph, const cu_graph_node *from, const cu_graph_node *to,
				       const struct cux_edge_data *edges, size_t n)
{
	API(cuGraphRemoveDependencies_v2, NEED_INIT);
	return remove_dependencies(graph, from, to, edges, n);
}

cu_result cuGraphNodeGetType(cu_graph_node node, int *type)
{
	API(cuGraphNodeGetType, NEED_INIT);
	if (!type || !handle_is(KIND_NODE, node))
		return CU_INVALID_VALUE;
	*type = node->type;
	return CU_SUCCESS;
}

cu_result cuGraphNodeFindInClone(cu_graph_node *node, cu_graph_node original, cu_graph clone)
{
	API(cuGraphNodeFindInClone, NEED_INIT);
	if (!node || !handle_is(KIND_NODE, original) || !handle_is(KIND_GRAPH, clone) ||
	    clone->original != original->graph->id)
		return CU_INVALID_VALUE;
	for (size_t i = 0; i < clone->n_nodes; i++) {
		if (clone->node[i]->original == original->id) {
			*node = clone->node[i];
			return CU_SUCCESS;
		}
	}
	return CU_INVALID_VALUE;
}
