// The one stylesheet: light and dark, phone and desk. Its address changes with its text, so that browsers may keep it.
import { createHash } from "node:crypto";

export const STYLE = `
:root {
  color-scheme: light dark;
  --bg: #f5f6f3; --panel: #ffffff; --raised: #fafbf9; --ink: #1c2428; --soft: #5a666d; --line: #dde2dd;
  --accent: #1c6a63; --accent-ink: #ffffff; --focus: #1c6a63;
  --good: #23673a; --good-bg: #e4f1e7; --bad: #9c2f27; --bad-bg: #fae7e4; --ask: #7a5200; --ask-bg: #fbefd3;
  --due: #5a4a8a; --due-bg: #ece8f6; --live: #1b5f8c; --live-bg: #e1eef7; --quiet-bg: #e9ecea;
  --llm: #6a63c4; --write: #c06a1f; --read: #4c91b0; --held: #b9c6c2; --track: #e6eae7;
  --shadow: 0 1px 2px rgb(20 30 30 / 6%), 0 4px 16px rgb(20 30 30 / 4%);
}
@media (prefers-color-scheme: dark) {
  :root {
    --bg: #12171a; --panel: #1a2125; --raised: #1f272c; --ink: #d7dee1; --soft: #94a3ab; --line: #2c363c;
    --accent: #5cb8ac; --accent-ink: #0d1a19; --focus: #7fd0c5;
    --good: #84cf9b; --good-bg: #1c3325; --bad: #f0968c; --bad-bg: #3c2220; --ask: #e8c069; --ask-bg: #382d16;
    --due: #b9abe8; --due-bg: #2b2640; --live: #85bfe6; --live-bg: #1b2f3d; --quiet-bg: #283137;
    --llm: #938df0; --write: #e0944c; --read: #6fb4d3; --held: #48575c; --track: #2a3439; --shadow: none;
  }
}
*, *::before, *::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--bg); color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
h1, h2, h3 { line-height: 1.25; margin: 0; font-weight: 650; overflow-wrap: anywhere; }
h1 { font-size: 1.45rem; letter-spacing: -0.01em; }
h2 { font-size: 1.05rem; }
h3 { font-size: 1rem; }
p { margin: 0.5rem 0; }
a { color: var(--accent); text-underline-offset: 0.15em; }
code, pre, .mono { font-family: ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, monospace; font-size: 0.86em; }
pre { margin: 0.5rem 0; padding: 0.75rem 0.9rem; background: var(--raised); border: 1px solid var(--line); border-radius: 8px; overflow: auto; max-height: 24rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.prewrap { white-space: pre-wrap; }
bdi { overflow-wrap: anywhere; }
.soft { color: var(--soft); }
.small { font-size: 0.88rem; }
.num { font-variant-numeric: tabular-nums; }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; border-radius: 4px; }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 1rem; top: 0.5rem; background: var(--panel); padding: 0.4rem 0.8rem; z-index: 2; }

.top { display: flex; flex-wrap: wrap; align-items: center; gap: 0.25rem 1.25rem; padding: 0.6rem 1.25rem; background: var(--panel); border-bottom: 1px solid var(--line); }
.brand { font-weight: 700; letter-spacing: -0.02em; }
.top nav { display: flex; gap: 0.25rem; flex: 1; }
.top nav a { color: var(--soft); text-decoration: none; padding: 0.4rem 0.75rem; border-radius: 8px; font-weight: 550; }
.top nav a:hover { background: var(--raised); color: var(--ink); }
.top nav a[aria-current] { color: var(--ink); background: var(--quiet-bg); }
.count { background: var(--ask-bg); color: var(--ask); border-radius: 99px; padding: 0.05rem 0.5rem; font-size: 0.8rem; font-weight: 650; }
.who { display: flex; align-items: center; gap: 0.75rem; font-size: 0.9rem; }
main { max-width: 70rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
.head { display: flex; flex-wrap: wrap; align-items: center; gap: 0.5rem 0.9rem; margin-bottom: 0.4rem; }
.sub { margin: 0 0 1.25rem; color: var(--soft); }

.card { background: var(--panel); border: 1px solid var(--line); border-radius: 12px; padding: 1.1rem 1.25rem; margin: 0 0 1rem; box-shadow: var(--shadow); }
.card.narrow { max-width: 34rem; margin: 8vh auto 0; }
.card > h2:first-child { margin-bottom: 0.75rem; }
.card .row { display: flex; flex-wrap: wrap; gap: 0.35rem 0.9rem; align-items: center; justify-content: space-between; }
.card.asks { border-left: 4px solid var(--ask); }
.card.doubt { border-left: 4px solid var(--bad); }
.empty { text-align: center; color: var(--soft); padding: 3rem 1rem; }
.empty h2 { color: var(--ink); margin-bottom: 0.35rem; }
.banner { margin: 0 0 1rem; padding: 0.7rem 1rem; border-radius: 10px; }
.banner.warn { background: var(--ask-bg); color: var(--ask); }
.banner.ok { background: var(--good-bg); color: var(--good); }
.banner.bad { background: var(--bad-bg); color: var(--bad); }
.badge { display: inline-block; padding: 0.12rem 0.6rem; border-radius: 99px; font-size: 0.8rem; font-weight: 600; white-space: nowrap; }
.badge.good { background: var(--good-bg); color: var(--good); }
.badge.bad { background: var(--bad-bg); color: var(--bad); }
.badge.ask { background: var(--ask-bg); color: var(--ask); }
.badge.due { background: var(--due-bg); color: var(--due); }
.badge.live { background: var(--live-bg); color: var(--live); }
.badge.quiet { background: var(--quiet-bg); color: var(--soft); }
.filters { display: flex; flex-wrap: wrap; gap: 0.35rem; margin: 0 0 1.1rem; padding: 0; list-style: none; }
.filters a { display: block; text-decoration: none; color: var(--soft); border: 1px solid var(--line); background: var(--panel); border-radius: 99px; padding: 0.3rem 0.85rem; font-size: 0.9rem; }
.filters a[aria-current] { color: var(--accent-ink); background: var(--accent); border-color: var(--accent); }

form { margin: 0; }
label { display: block; font-size: 0.9rem; font-weight: 550; margin: 0.6rem 0; }
label .soft { font-weight: 400; }
input, textarea, select { display: block; width: 100%; margin-top: 0.25rem; padding: 0.55rem 0.7rem; font: inherit; color: inherit; background: var(--raised); border: 1px solid var(--line); border-radius: 8px; }
input[type=radio] { display: inline-block; width: auto; margin: 0 0.5rem 0 0; accent-color: var(--accent); }
textarea { min-height: 4.5rem; resize: vertical; }
textarea.code { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, monospace; font-size: 0.86rem; min-height: 11rem; }
textarea.short { min-height: 4rem; }
.choice { display: flex; align-items: baseline; font-weight: 450; margin: 0.45rem 0; }
.buttons { display: flex; flex-wrap: wrap; gap: 0.6rem; margin-top: 0.8rem; align-items: center; }
button { font: inherit; font-weight: 600; min-height: 2.75rem; padding: 0.45rem 1.15rem; border-radius: 9px; border: 1px solid var(--line); background: var(--raised); color: var(--ink); cursor: pointer; }
button:hover { border-color: var(--soft); }
button.primary { background: var(--accent); border-color: var(--accent); color: var(--accent-ink); }
button.danger { color: var(--bad); border-color: currentColor; background: transparent; }
button.plain { background: none; border: 0; padding: 0 0.25rem; min-height: 2rem; color: var(--soft); text-decoration: underline; text-underline-offset: 0.15em; font-weight: 450; }
.fields { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: 0 0.9rem; }
details > summary { cursor: pointer; }
details.more > summary { color: var(--accent); font-weight: 550; padding: 0.35rem 0; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1rem; margin: 0.6rem 0; font-size: 0.92rem; }
dl.facts dt { color: var(--soft); }
dl.facts dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }

.runs { list-style: none; margin: 0; padding: 0; }
.runs > li { border-top: 1px solid var(--line); }
.runs > li:first-child { border-top: 0; }
.runs a.run { display: grid; grid-template-columns: minmax(0, 1fr) 9.5rem 12rem 6.5rem; gap: 0.2rem 1rem; align-items: center; padding: 0.75rem 0.25rem; color: inherit; text-decoration: none; border-radius: 8px; }
.runs a.run:hover { background: var(--raised); }
.runs .id { font-weight: 600; }
.runs .note { font-size: 0.87rem; color: var(--soft); }
.runs .cost { text-align: right; font-variant-numeric: tabular-nums; }

.meter { margin: 0.7rem 0; }
.meter .row { font-size: 0.9rem; }
.bar { display: block; width: 100%; height: 0.6rem; border-radius: 99px; }
.runs .bar { height: 0.45rem; }
.bar .track { fill: var(--track); }
.bar .spent { fill: var(--accent); }
.bar .spent.low { fill: var(--write); }
.bar .spent.out { fill: var(--bad); }
.bar .held { fill: var(--held); }
.bar .llm { fill: var(--llm); } .bar .write { fill: var(--write); } .bar .read { fill: var(--read); }
.bar .open { opacity: 0.6; } .bar .wrong { fill: var(--bad); }
.bar .gap { fill: var(--line); }

.timeline { list-style: none; margin: 0; padding: 0; font-size: 0.9rem; }
.timeline > li { border-top: 1px solid var(--line); }
.timeline summary { display: grid; grid-template-columns: 2.6rem minmax(8rem, 15rem) minmax(0, 1fr) 4.8rem 6rem; gap: 0 0.75rem; align-items: center; padding: 0.4rem 0.25rem; list-style: none; }
.timeline summary::-webkit-details-marker { display: none; }
.timeline summary:hover { background: var(--raised); }
.timeline .n { color: var(--soft); text-align: right; font-variant-numeric: tabular-nums; }
.timeline .what { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.timeline .took, .timeline .paid { text-align: right; font-variant-numeric: tabular-nums; color: var(--soft); }
.timeline .paid { color: var(--ink); }
.timeline .bar { height: 1.1rem; border-radius: 3px; }
.timeline dl.facts { padding: 0 0.25rem 0.6rem 3.6rem; }
.legend { display: flex; flex-wrap: wrap; gap: 0.3rem 1.1rem; font-size: 0.87rem; color: var(--soft); margin: 0.25rem 0 0.6rem; }
.legend svg { width: 0.75rem; height: 0.75rem; display: inline-block; vertical-align: -0.05rem; border-radius: 3px; margin-right: 0.35rem; }
.axis { display: flex; justify-content: space-between; font-size: 0.82rem; color: var(--soft); gap: 1rem; }
.area { display: block; width: 100%; height: 7rem; }
.area .fill { fill: var(--accent); opacity: 0.16; }
.area .line { fill: none; stroke: var(--accent); stroke-width: 2; vector-effect: non-scaling-stroke; }
.area .base { stroke: var(--line); stroke-width: 1; vector-effect: non-scaling-stroke; }
.split { display: grid; grid-template-columns: 1fr 1fr; gap: 1.25rem 2rem; }
.shares { list-style: none; margin: 0; padding: 0; font-size: 0.9rem; }
.shares li { margin: 0.45rem 0; }
.pager { display: flex; justify-content: space-between; margin-top: 0.9rem; }

.diff { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, monospace; font-size: 0.84rem; border: 1px solid var(--line); border-radius: 8px; overflow: auto; max-height: 24rem; background: var(--raised); padding: 0.5rem 0; }
.diff div { white-space: pre-wrap; overflow-wrap: anywhere; padding: 0 0.9rem 0 2rem; text-indent: -1.2rem; }
.diff del, .diff ins { text-decoration: none; }
.diff .out { background: var(--bad-bg); color: var(--bad); }
.diff .in { background: var(--good-bg); color: var(--good); }

@media (max-width: 44rem) {
  body { font-size: 15.5px; }
  main { padding: 1rem 0.85rem 3rem; }
  .top { padding: 0.5rem 0.85rem; justify-content: space-between; }
  .top nav { order: 3; flex-basis: 100%; margin-left: -0.75rem; }
  .card { padding: 0.95rem 1rem; }
  .runs a.run { grid-template-columns: minmax(0, 1fr) auto; }
  .runs a.run > :first-child { grid-row: span 2; }
  .runs a.run > :nth-child(2) { text-align: right; }
  .runs .budget { grid-column: 1 / -1; order: 5; }
  .runs .budget:empty { display: none; }
  .timeline summary { grid-template-columns: 2rem minmax(0, 1fr) auto auto; }
  .timeline .chart { grid-column: 2 / -1; order: 9; }
  .timeline dl.facts { padding-left: 0.25rem; }
  .split { grid-template-columns: 1fr; }
  dl.facts { grid-template-columns: 1fr; gap: 0; }
  dl.facts dd { margin-bottom: 0.35rem; }
  .buttons button { flex: 1 1 auto; }
}
@media (prefers-reduced-motion: no-preference) { button, .runs a.run, .top nav a { transition: background 0.12s, border-color 0.12s; } }
`;

export const STYLE_PATH = `/inbox/style-${createHash("sha256").update(STYLE).digest("hex").slice(0, 12)}.css`;
