"""The look of a report: one style sheet for screens of any width and for paper."""

STYLE = """
:root { --ink: #1d2733; --soft: #5b6b7d; --line: #d8dfe6; --fill: #f4f7fa; --accent: #1660a8; --wrong: #b3261e; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 66rem; padding: 1rem; color: var(--ink); background: #fff;
       font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .5rem 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; padding-top: .4rem; border-top: 2px solid var(--line); }
h3 { font-size: 1rem; margin: 1rem 0 .4rem; }
p { margin: .4rem 0 .8rem; max-width: 46rem; }
.soft, figcaption { color: var(--soft); font-size: .875rem; }
nav { display: flex; flex-wrap: wrap; gap: .2rem .9rem; font-size: .9rem; margin: .6rem 0 0; }
a { color: var(--accent); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .6rem; margin: 1rem 0; }
.card { background: var(--fill); border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem; }
.card:first-child { grid-column: span 2; }
.card b { display: block; font-size: 1.25rem; line-height: 1.3; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: .4rem 0 1rem; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: middle; }
th:first-child, td:first-child, table.words td, table.words th { text-align: left; }
td:first-child { overflow-wrap: break-word; min-width: 15rem; max-width: 24rem; }
thead th { border-bottom: 2px solid var(--ink); white-space: nowrap; }
tr.best td { background: #e6f0fa; font-weight: 600; }
table.confusion td, table.confusion th { padding: .25rem .45rem; text-align: center; border: 1px solid #fff;
       min-width: 2.4rem; }
table.confusion td:first-child { text-align: right; font-weight: 600; min-width: 0; white-space: nowrap; }
table.confusion thead th { border-bottom: 0; font-weight: 600; vertical-align: bottom; }
table.confusion thead th + th { writing-mode: vertical-rl; transform: rotate(180deg); text-align: left; }
figure { margin: .6rem 0 1.2rem; }
svg { max-width: 100%; height: auto; display: block; }
svg text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: var(--soft); }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 0 1.5rem; align-items: start; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .85rem; color: var(--soft); }
.swatch { display: inline-block; width: .9rem; height: .9rem; border-radius: 2px; margin-right: .3rem;
          vertical-align: -2px; }
.sentence { display: flex; flex-wrap: wrap; gap: .25rem; margin: .2rem 0 1rem; }
.token { border: 1px solid var(--line); border-radius: .3rem; padding: .1rem .35rem; font-size: .8rem;
         line-height: 1.35; text-align: center; }
.token b { display: block; font-size: .9rem; }
.token span { display: block; color: var(--soft); }
.token.wrong { border-color: var(--wrong); background: #fdecea; }
.token.wrong .guess { color: var(--wrong); font-weight: 700; }
pre { background: var(--fill); border: 1px solid var(--line); border-radius: .4rem; padding: .7rem; overflow-x: auto;
      font-size: .8rem; }
@media (max-width: 34rem) { body { padding: .7rem; font-size: 15px; } h1 { font-size: 1.3rem; }
      th, td { padding: .25rem .4rem; } td:first-child { min-width: 9rem; } .card b { font-size: 1.1rem; } }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } nav { display: none; }
      .wide, pre { overflow: visible; } pre { white-space: pre-wrap; } table { font-size: 8pt; }
      h2, h3, h2 + p { break-after: avoid; } figure, table, .card, .sentence, tr { break-inside: avoid; }
      * { -webkit-print-color-adjust: exact; print-color-adjust: exact; } }
"""
