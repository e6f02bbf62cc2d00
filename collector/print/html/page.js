// SPDX-License-Identifier: Apache-2.0
// Draws what the page holds as data: map, timeline, traces; filters and sorts the table of slots. Every text goes into the page as text.
"use strict";
(function () {
	const data = JSON.parse(document.getElementById("data").textContent);
	const two = data.runs.length === 2;
	const $ = (id) => document.getElementById(id);
	let colors = {};
	const color = (name) => colors[name] = colors[name] || getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
	const amount = (n, one) => n + " " + one + (n === 1 ? "" : "s");
	let chosen = Math.max(0, data.verdicts.findIndex((v) => v === "differs"));
	document.documentElement.classList.add("js");

	function element(name, text, attributes) {
		const made = document.createElement(name);
		if (text !== undefined)
			made.textContent = text;
		for (const key in attributes || {})
			made.setAttribute(key, attributes[key]);
		return made;
	}

	function legend(at, entries, text) {
		at.textContent = "";
		for (const [name, says] of entries) {
			const swatch = element("span", undefined, { class: "swatch", "aria-hidden": "true" });
			swatch.style.background = color(name);
			at.append(swatch, says);
		}
		at.append(element("br"), text);
	}

	// A canvas of that many CSS pixels, sharp on every screen.
	function canvas(id, width, height) {
		const at = $(id), ratio = Math.min(window.devicePixelRatio || 1, Math.max(1, 16000 / Math.max(width, height)));
		at.width = Math.round(width * ratio);
		at.height = Math.round(height * ratio);
		at.style.width = width + "px";
		at.style.height = height + "px";
		const pen = at.getContext("2d");
		pen.scale(ratio, ratio);
		pen.font = "11px system-ui, sans-serif";
		pen.textBaseline = "middle";
		return pen;
	}

	// Arrow keys and the pointer move a place {x, y} within columns x rows; told() says what is there.
	function moves(id, columns, rows, place, at, told) {
		const here = { x: 0, y: place() };
		const go = (x, y) => {
			here.y = Math.min(Math.max(y, 0), rows() - 1);
			here.x = Math.min(Math.max(x, 0), columns(here.y) - 1);
			told(here);
		};
		$(id).addEventListener("keydown", (event) => {
			const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], Home: [-1e9, 0],
				End: [1e9, 0], PageUp: [0, -10], PageDown: [0, 10] }[event.key];
			if (event.key === "Enter" || event.key === " ")
				choose(here.y % data.lanes.length);
			else if (step)
				go(here.x + step[0], here.y + step[1]);
			else
				return;
			event.preventDefault();
		});
		const pointed = (event) => {
			const box = $(id).getBoundingClientRect(), found = at(event.clientX - box.left, event.clientY - box.top);
			if (found)
				go(found.x, found.y);
			return found;
		};
		$(id).addEventListener("mousemove", pointed);
		$(id).addEventListener("click", (event) => { if (pointed(event)) choose(here.y % data.lanes.length); });
	}

	// ---- the map ----

	const LEFT = 190;
	const map = { width: 6, height: 10, top: 2 };
	const columnsOf = (lane) => data.map.rows[lane].length;
	const planeName = (lane, x) => (data.map.planes[data.map.layout[lane]] || [])[x] || "plane " + x * data.map.fold;
	const cellText = (c) => c === "-" ? "not measured" : c === "=" ? "equal" : c === "x" ? "differs" : c === "N" ? "NaN or Inf"
		: c === "0" ? "all zero" : "abs-max from 2^" + (c.charCodeAt(0) - 110) + (c === "z" ? " up" : "");

	function cellColor(c) {
		if (c === "=" || c === "-" || c === "x" || c === "N" || c === "0")
			return color({ "=": "equal", "-": "none", x: "differs", N: "differs", "0": "zero" }[c]);
		return "hsl(" + (220 - 7 * (c.charCodeAt(0) - 97)) + " 55% 55%)";
	}

	function drawMap() {
		const most = Math.max(1, ...data.lanes.map((_, lane) => columnsOf(lane))), paint = {};
		const named = most <= 64 && data.map.planes.length === 1 && data.map.fold === 1;
		map.width = Math.max(2, Math.min(30, Math.floor(920 / most)));
		map.top = named ? 92 : 2;
		map.height = data.lanes.length > 200 ? 4 : 13;
		const pen = canvas("map-canvas", LEFT + most * map.width + 80, Math.max(1, data.lanes.length) * map.height + map.top + 2);
		for (let x = 0; named && x < most; x++) {
			pen.save();
			pen.translate(LEFT + (x + 0.5) * map.width, map.top - 6);
			pen.rotate(-Math.PI / 4);
			pen.fillStyle = color("ink");
			pen.fillText(planeName(0, x).slice(0, 22), 0, 0, 118);
			pen.restore();
		}
		const gap = map.width > 5 ? 1 : 0, between = map.height > 6 ? 1 : 0;
		for (let lane = 0; lane < data.lanes.length; lane++) {
			const row = data.map.rows[lane], y = lane * map.height + map.top;
			for (let x = 0; x < row.length; x++) {
				pen.fillStyle = paint[row[x]] = paint[row[x]] || cellColor(row[x]);
				pen.fillRect(LEFT + x * map.width, y, map.width - gap, map.height - between);
			}
			if (map.height > 8) {
				pen.fillStyle = color(lane === chosen ? "link" : "ink");
				pen.fillText(data.lanes[lane].slice(-30), 4, y + map.height / 2, LEFT - 10);
			}
		}
		const fold = data.map.fold > 1 ? " A cell is the worst of " + data.map.fold + " planes." : "";
		const shown = data.lanes.length < data.lanes_all ? amount(data.lanes.length, "slot") + " of " + data.lanes_all : amount(data.lanes.length, "slot");
		if (two)
			legend($("map-legend"), [["equal", "equal"], ["differs", "differs"], ["none", "not compared"]],
				shown + ", one row each; a column is a plane, of the donation that the table of slots shows." + fold);
		else
			legend($("map-legend"), [["differs", "NaN or Inf"], ["zero", "all zero"], ["none", "not measured"]],
				shown + ", one row each; a column is a plane of the last donation, coloured from blue (small) to red (large abs-max)." + fold);
		$("map-canvas").setAttribute("aria-label", "Map of " + shown + " and at most " + amount(most, "column") +
			". The table of slots holds the same as text; the arrow keys read single cells.");
	}

	function tellMap(here) {
		const c = data.map.rows[here.y][here.x];
		$("map-readout").textContent = data.lanes[here.y] + ", " + planeName(here.y, here.x) + ": " + cellText(c || "-");
	}

	// ---- the timeline: one block for each run, a strip of launches above its lanes ----

	const STRIP = 34, FIELDS = 6, line = { height: 10 };
	const blockHeight = () => STRIP + data.lanes.length * line.height + 14;

	function drawBlock(pen, run, top, width) {
		const t = data.timeline[run], most = Math.max(1, ...t.launches), w = width / data.bins;
		pen.fillStyle = color("ink");
		pen.fillText((two ? "run " + data.runs[run] + ": " : "") + "launches", 4, top + STRIP / 2, LEFT - 10);
		pen.fillStyle = color("launch");
		t.launches.forEach((n, bin) => {
			const high = n / most * (STRIP - 6);
			pen.fillRect(LEFT + bin * w, top + STRIP - 2 - high, Math.max(w - 0.5, 1), high);
		});
		const marks = [color(run ? "b" : "a"), color("restore"), color("other")], differing = color("differs");
		t.lanes.forEach((cells, lane) => {
			const y = top + STRIP + lane * line.height;
			if (line.height > 8) {
				pen.fillStyle = color(lane === chosen ? "link" : "ink");
				pen.fillText(data.lanes[lane].slice(-30), 4, y + line.height / 2, LEFT - 10);
			}
			for (let i = 0; i < cells.length; i += FIELDS) {
				for (let kind = 2; kind >= 0; kind--) {
					if (!cells[i + 1 + kind])
						continue;
					pen.fillStyle = kind === 0 && cells[i + 5] ? differing : marks[kind];
					pen.fillRect(LEFT + cells[i] * w, y + 1, Math.max(w, 2), line.height - 2);
					if (kind === 2 && line.height > 6)
						pen.clearRect(LEFT + cells[i] * w - 1, y + 1, Math.max(w, 2) + 2, (line.height - 2) / 2);
				}
			}
		});
	}

	function drawTimeline() {
		line.height = data.lanes.length > 200 ? 3 : 12;
		const pen = canvas("timeline-canvas", LEFT + 980, blockHeight() * data.runs.length);
		data.runs.forEach((_, run) => drawBlock(pen, run, run * blockHeight(), 970));
		const runs = data.runs.map((_, run) => [run ? "b" : "a", two ? "donation in run " + data.runs[run] : "donation"]);
		const slice = Math.max(...data.timeline.map((t) => t.seconds)) / data.bins;
		if (two)
			runs.push(["differs", "donation that differs"]);
		legend($("timeline-legend"), [...runs, ["restore", "restore"], ["other", "alloc, clear, copy, discard or free"], ["launch", "graph launches"]],
			"Time from the first event of each run, in " + data.bins + " steps of " + slice.toPrecision(3) +
			" seconds at most; one mark stands for all events of a step. Launches are counted at the slot event that follows them.");
		$("timeline-canvas").setAttribute("aria-label", "Timeline of " + amount(data.lanes.length, "slot") + " in " + data.bins +
			" steps. The table of slots counts the donations and restores of each; the arrow keys read single steps.");
	}

	function tellTimeline(here) {
		const run = Math.floor(here.y / data.lanes.length), lane = here.y % data.lanes.length, cells = data.timeline[run].lanes[lane];
		let text = "nothing";
		for (let i = 0; i < cells.length; i += FIELDS)
			if (cells[i] === here.x)
				text = amount(cells[i + 1], "donation") + (two ? " (" + cells[i + 5] + " differing), " : ", ") + amount(cells[i + 2], "restore") + ", " + amount(cells[i + 3], "other event") +
					", " + amount(cells[i + 4], "launch").replace("launchs", "launches") + " on its pool since its event before";
		$("timeline-readout").textContent = data.lanes[lane] + (two ? ", run " + data.runs[run] : "") + ", at " +
			(data.timeline[run].seconds * here.x / data.bins).toPrecision(4) + " seconds: " + text;
	}

	// ---- abs-max of one slot ----

	function drawTrace() {
		const pen = canvas("trace-canvas", 1170, 190), traces = data.traces.map((run) => run[chosen] || []);
		const points = traces.flatMap((t) => t.filter((_, i) => i % 2)), numbers = points.filter((v) => typeof v === "number");
		const high = Math.max(1e-300, ...numbers), last = Math.max(1, ...traces.map((t) => t.length ? t[t.length - 2] : 1));
		const x = (n) => 60 + (last > 1 ? (n - 1) / (last - 1) : 0.5) * 1095, y = (v) => typeof v === "number" ? 172 - v / high * 156 : 8;
		pen.fillStyle = color("soft");
		pen.fillText(high > 1e-300 ? high.toPrecision(4) : "0", 4, 16);
		pen.fillText("0", 4, 172);
		traces.forEach((t, run) => {
			pen.strokeStyle = pen.fillStyle = color(run ? "b" : "a");
			pen.lineWidth = run ? 1.5 : 2.5;
			pen.beginPath();
			for (let i = 0; i < t.length; i += 2)
				pen[i ? "lineTo" : "moveTo"](x(t[i]), y(t[i + 1]));
			pen.stroke();
			for (let i = 0; i < t.length && t.length < 400; i += 2)
				pen.fillRect(x(t[i]) - 2, y(t[i + 1]) - 2, 4, 4);
		});
		const step = data.trace_step > 1 ? " A point is the largest of " + data.trace_step + " donations that follow each other." : "";
		legend($("trace-note"), data.runs.map((name, run) => [run ? "b" : "a", two ? "run " + name : "abs-max"]),
			"Left to right: 1st to " + last + ". donation. NaN and Inf stand at the top." + step);
		traceTable(traces);
	}

	function traceTable(traces) {
		const rows = new Map(), head = element("tr"), body = $("trace-table").tBodies[0];
		traces.forEach((t, run) => {
			for (let i = 0; i < t.length; i += 2)
				(rows.get(t[i]) || rows.set(t[i], ["", ""]).get(t[i]))[run] = t[i + 1];
		});
		head.append(element("th", "donation", { scope: "col" }), ...data.runs.map((name) => element("th", two ? "run " + name : "abs-max", { scope: "col" })));
		$("trace-table").tHead.replaceChildren(head);
		body.replaceChildren(...[...rows].sort((a, b) => a[0] - b[0]).map(([n, values]) => {
			const row = element("tr");
			row.append(element("th", n, { scope: "row" }), ...data.runs.map((_, run) => element("td", values[run], { class: "n" })));
			return row;
		}));
	}

	function choose(lane) {
		chosen = lane;
		$("trace-slot").selectedIndex = lane;
		drawTrace();
		drawMap();
		drawTimeline();
	}

	// ---- the table of slots ----

	const SHOWN = 500, table = $("slots-table"), laneOf = new Map(data.lanes.map((name, lane) => [name, lane]));
	const texts = data.slots.map((row) => row.join(" ").toLowerCase());
	let order = { column: -1, up: true };

	function slotRow(cells) {
		const row = element("tr"), name = element("th", undefined, { scope: "row" });
		if (laneOf.has(cells[0])) {
			const button = element("button", cells[0], { type: "button", title: "show its abs-max" });
			button.addEventListener("click", () => { choose(laneOf.get(cells[0])); $("traces").scrollIntoView(); $("trace-slot").focus(); });
			name.append(button);
		} else {
			name.textContent = cells[0];
		}
		row.append(name, ...cells.slice(1).map((text) => element("td", text)));
		return row;
	}

	// Numbers by value, texts with the numbers in them by value.
	function compare(a, b) {
		const x = Number(a || NaN), y = Number(b || NaN);
		return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
	}

	function drawSlots() {
		const words = $("slots-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
		let rows = data.slots.filter((_, i) => words.every((word) => texts[i].includes(word)));
		if (order.column >= 0)
			rows = rows.slice().sort((a, b) => (order.up ? 1 : -1) * compare(a[order.column], b[order.column]));
		table.tBodies[0].replaceChildren(...rows.slice(0, SHOWN).map(slotRow));
		$("slots-shown").textContent = rows.length > SHOWN ? "The first " + SHOWN + " of " + rows.length + " matching slots; " + data.slots_all + " in all."
			: amount(rows.length, "slot") + " of " + data.slots_all + " shown.";
	}

	function sortable() {
		[...table.tHead.rows[0].cells].forEach((head, column) => {
			const button = element("button", head.textContent, { type: "button" });
			head.replaceChildren(button);
			button.addEventListener("click", () => {
				order = { column: column, up: order.column !== column || !order.up };
				[...table.tHead.rows[0].cells].forEach((other) => other.removeAttribute("aria-sort"));
				head.setAttribute("aria-sort", order.up ? "ascending" : "descending");
				drawSlots();
			});
		});
	}

	function draw() {
		colors = {}; // light or dark
		drawMap();
		drawTimeline();
		drawTrace();
	}

	$("trace-slot").append(...data.lanes.map((name) => element("option", name)));
	$("trace-slot").addEventListener("change", (event) => choose(event.target.selectedIndex));
	$("slots-filter").addEventListener("input", drawSlots);
	if (data.lanes.length) {
		$("trace-slot").selectedIndex = chosen;
		draw();
		moves("map-canvas", columnsOf, () => data.lanes.length, () => chosen, (x, y) => x < LEFT ? null
			: { x: Math.floor((x - LEFT) / map.width), y: Math.floor((y - map.top) / map.height) }, tellMap);
		moves("timeline-canvas", () => data.bins, () => data.lanes.length * data.runs.length, () => chosen, (x, y) => {
			const run = Math.floor(y / blockHeight()), lane = Math.floor((y - run * blockHeight() - STRIP) / line.height);
			return x < LEFT || lane < 0 || lane >= data.lanes.length || run >= data.runs.length ? null
				: { x: Math.floor((x - LEFT) / 970 * data.bins), y: run * data.lanes.length + lane };
		}, tellTimeline);
		window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
	} else {
		for (const id of ["map", "timeline", "traces"])
			$(id).replaceChildren($(id).querySelector("h2"), element("p", "No slot was donated."));
	}
	sortable();
	drawSlots();
	document.documentElement.dataset.ready = "1";
})();
