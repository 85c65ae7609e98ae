/** The style sheet of the page; its digest is in the Content-Security-Policy, so it is put in unchanged. */
export const styles = `
:root{color-scheme:light dark;--bg:#fff;--fg:#1b2430;--soft:#526070;--line:#dde2e8;--panel:#f6f8fa;--code:#eef1f5;--link:#0b57d0;
--good:#13703a;--bad:#b3261e;--note:#7a5700;--same:#8a97a6;--equivalent:#b6c2cf;--differs:#c8401a;--onlyV2:#1f5fbf;--onlyV3:#7b3fb3;--unknown:#616c79;--delay:#1f5fbf;--ink:#ffffffb8;--edge:#fff;--good-bg:#eaf6ee;--bad-bg:#fdefec;--note-bg:#fdf5e1}
@media (prefers-color-scheme:dark){:root{--bg:#12171d;--fg:#e7ecf2;--soft:#a3b0be;--line:#2d3742;--panel:#1a2129;--code:#232c36;--link:#8ab4f8;
--good:#6fd196;--bad:#ff9a8a;--note:#f0c66b;--same:#6d7b8a;--equivalent:#46525f;--differs:#f0744a;--onlyV2:#6aa3f5;--onlyV3:#bd8cf0;--unknown:#96a1ae;--delay:#6aa3f5;--ink:#12171db8;--edge:#12171d;--good-bg:#14271c;--bad-bg:#2d1a18;--note-bg:#2a2415}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums lining-nums}
main{max-width:66rem;margin:0 auto;padding:2.5rem 1.5rem 4rem}
h1,h2,h3,p,dl,dd,ul,ol,figure{margin:0;padding:0}
ul,ol{list-style:none}
h1{font-size:2.4rem;line-height:1.1;letter-spacing:-.02em;font-weight:700}
h2{font-size:1.35rem;line-height:1.25;letter-spacing:-.01em;margin-bottom:.35rem}
h3{font-size:1rem;line-height:1.35}
section,footer{margin-top:3rem}
code{font:.86em/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;background:var(--code);border-radius:4px;padding:.1em .35em;overflow-wrap:anywhere}
.lead{color:var(--soft);margin-bottom:1rem;max-width:46rem}
.note,.share,figcaption p{color:var(--soft);font-size:.86rem}
.hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.defs{position:absolute;width:0;height:0}
.kicker{font-size:.82rem;letter-spacing:.04em;color:var(--soft);margin-bottom:.9rem}
.outcome{display:flex;gap:1.4rem;align-items:flex-start;padding:1.6rem;border-radius:14px;border:1px solid var(--line)}
.outcome h1{margin-bottom:.45rem}
.outcome.ready{background:var(--good-bg);--tone:var(--good)}.outcome.differs{background:var(--bad-bg);--tone:var(--bad)}.outcome.inconclusive{background:var(--note-bg);--tone:var(--note)}
.outcome h1{color:var(--tone)}
.sign{flex:none;width:4.2rem;height:4.2rem;fill:none;stroke:var(--tone);stroke-width:3.4;stroke-linecap:round;stroke-linejoin:round}
.sentence{font-size:1.12rem;max-width:46rem;text-wrap:pretty}
.doubt{margin-top:.5rem;padding-left:1rem;border-left:3px solid var(--tone);max-width:46rem}
.meta{display:flex;flex-wrap:wrap;gap:.6rem 1.8rem;margin-top:1.2rem;font-size:.9rem}
.meta dt{color:var(--soft);font-size:.78rem}.meta dd{overflow-wrap:anywhere}
.bar{display:block;width:100%;height:1.6rem;border-radius:6px;overflow:hidden;margin-bottom:1rem}
.edge{stroke:var(--edge);stroke-width:1}
.f-same{fill:var(--same)}.f-equivalent{fill:url(#p-equivalent)}.f-differs{fill:var(--differs)}.f-onlyV2{fill:url(#p-onlyV2)}.f-onlyV3{fill:url(#p-onlyV3)}.f-unknown{fill:url(#p-unknown)}.f-delay{fill:var(--delay)}
.c-equivalent{fill:var(--equivalent)}.c-onlyV2{fill:var(--onlyV2)}.c-onlyV3{fill:var(--onlyV3)}.c-unknown{fill:var(--unknown)}
.ink{stroke:var(--ink);stroke-width:1.6;fill:none}.dot{fill:var(--ink)}
.swatch{width:.8rem;height:.8rem;border-radius:2px;overflow:hidden;flex:none}
.tiles{display:grid;grid-template-columns:repeat(6,1fr);gap:.75rem}
.tile{border:1px solid var(--line);border-radius:10px;padding:.8rem .85rem}
.tile dt{display:flex;align-items:center;gap:.4rem;font-size:.85rem;white-space:nowrap}
.tile b{font-size:1.45rem;line-height:1.4;letter-spacing:-.02em;font-weight:650}
.tile dd.note{font-size:.78rem;line-height:1.35}
.tile.zero b{color:var(--soft);font-weight:400}
.tile .share{display:block;min-height:1.3em}.share{white-space:nowrap}
.trust{display:grid;grid-template-columns:repeat(4,1fr);gap:1.25rem;margin-top:.75rem}
.trust li{display:flex;gap:.6rem}
.trust .value{font-size:1.15rem;font-weight:650;letter-spacing:-.01em}
.trust h3{font-size:.85rem;font-weight:400}
.mark{flex:none;width:1.15rem;height:1.15rem;margin-top:.1rem;border-radius:50%;font-size:.75rem;line-height:1.15rem;text-align:center;font-weight:700;color:var(--bg)}
.good .mark{background:var(--good)}.good .mark::after{content:"✓" / ""}
.note .mark,.trust li.note .mark{background:var(--note)}.trust li.note .mark::after{content:"i" / ""}
.bad .mark{background:var(--bad)}.bad .mark::after{content:"!" / ""}
.trust li.note{font-size:inherit;color:inherit}
.classes{border-top:1px solid var(--line)}
.classes article{display:grid;grid-template-columns:8.5rem minmax(0,1fr) minmax(0,1.15fr);gap:.5rem 1.6rem;padding:1.15rem 0;border-bottom:1px solid var(--line)}
.classes .count{font-size:1.45rem;font-weight:650;letter-spacing:-.02em;line-height:1.2;white-space:nowrap}
.classes .class{margin:.25rem 0 .4rem;font-size:.92rem;line-height:1.7}
.classes .what>p:last-child{font-size:.92rem}
.kind{display:inline-block;font-size:.78rem;color:var(--soft);border:1px solid var(--line);border-radius:99px;padding:0 .55em;line-height:1.55}
.pair{color:var(--soft)}.pair code{color:var(--fg)}
.why{font-size:.92rem}.why dt{font-size:.78rem;color:var(--soft)}.why dd+dt{margin-top:.4rem}
.hbar{display:block;width:100%;height:.8rem;border-radius:3px;overflow:hidden}.size .hbar{margin-top:.5rem;height:.5rem}
.charts{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:2.25rem 2.5rem;margin-top:1rem}
.charts>*{min-width:0}.charts>.wide{grid-column:1/-1}.stack{display:grid;gap:2.25rem;align-content:start}.chart{min-width:0}
figcaption{margin-bottom:.6rem}
.legend{display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;font-size:.84rem;margin-bottom:.5rem}
.legend li{display:flex;align-items:center;gap:.4rem}
.columns{display:block;width:100%;height:12rem;overflow:visible}
.grid{stroke:var(--line);stroke-width:1}.axis{fill:var(--soft);font-size:12px}
.ends{display:flex;justify-content:space-between;padding-left:6%;font-size:.82rem;color:var(--soft);margin-top:.2rem}
table{width:100%;border-collapse:collapse;font-size:.88rem}
th,td{text-align:left;padding:.4rem .75rem .4rem 0;border-bottom:1px solid var(--line);vertical-align:top;font-weight:400}
thead th{color:var(--soft);font-size:.78rem;white-space:nowrap}
.n{text-align:right;white-space:nowrap;padding-right:0;padding-left:.75rem}
td.zero{color:var(--soft)}
.bars{table-layout:fixed}.bars thead th{white-space:normal;vertical-align:bottom;overflow-wrap:normal}.bars th:first-child{width:40%}.bars thead .n{width:17%}.bars td.plot{vertical-align:middle}.bars tbody .n{overflow-wrap:anywhere}
.bars tbody tr:last-child>*{border-bottom:0}
.scroll{overflow-x:auto;max-height:26rem;overflow-y:auto}
.scroll:focus-visible,summary:focus-visible{outline:2px solid var(--link);outline-offset:2px}
details{margin-top:.75rem;font-size:.9rem}
summary{cursor:pointer;color:var(--link);width:fit-content}
details[open]>summary{margin-bottom:.5rem}
.expired{color:var(--bad);font-size:.78rem}
footer{border-top:1px solid var(--line);padding-top:1.25rem;font-size:.88rem;color:var(--soft)}
footer h2{font-size:1rem;color:var(--fg)}footer p{max-width:52rem;margin-top:.4rem}
@media (max-width:60rem){.tiles{grid-template-columns:repeat(3,1fr)}.trust{grid-template-columns:repeat(2,1fr)}.classes article{grid-template-columns:7rem minmax(0,1fr)}.why{grid-column:2}.bars th:first-child{width:34%}.bars thead .n{width:22%}}
@media (max-width:40rem){main{padding:1.25rem 1rem 3rem}h1{font-size:1.9rem}.outcome{flex-direction:column;gap:.8rem;padding:1.15rem}.sign{width:3rem;height:3rem}
.tiles{grid-template-columns:repeat(2,1fr)}.trust,.charts{grid-template-columns:minmax(0,1fr)}.classes article{grid-template-columns:minmax(0,1fr)}.why{grid-column:1}.bars th:first-child{width:32%}.bars thead .n{width:23%}.size{display:flex;flex-wrap:wrap;align-items:baseline;gap:0 .6rem}.size .hbar{flex:1 0 100%}.columns{height:9rem}}
@media print{@page{size:A4;margin:13mm}:root{color-scheme:light}body{font-size:9pt;line-height:1.4;-webkit-print-color-adjust:exact;print-color-adjust:exact}main{max-width:none;padding:0}
section,footer{margin-top:7mm}h2,h3,figcaption,summary,.lead{break-after:avoid}article,.outcome,.tile,.trust li,tr,figure.verdicts,.wide{break-inside:avoid}
.tiles{grid-template-columns:repeat(6,1fr);gap:2mm}.tile{padding:2mm}.tile b{font-size:13pt}.tile dt{font-size:8pt;gap:1mm}.tile dd.note{font-size:7pt}.trust{grid-template-columns:repeat(4,1fr)}
.classes article{grid-template-columns:26mm minmax(0,1fr) minmax(0,1.15fr);padding:3mm 0}.why{grid-column:auto}.charts{gap:6mm}.classes .count{font-size:13pt}.classes .what>p:last-child,.why,.classes .class{font-size:8.5pt}.outcome{padding:5mm}.sign{width:16mm;height:16mm}h1{font-size:22pt}.sentence{font-size:11pt}.columns{height:38mm}.bars th:first-child{width:34%}.bars thead .n{width:22%}
.scroll{overflow:visible;max-height:none}details:not([open]){display:none}.outcome{background:none!important}}
@media print and (prefers-color-scheme:dark){:root{--bg:#fff;--fg:#1b2430;--soft:#526070;--line:#dde2e8;--code:#eef1f5;--good:#13703a;--bad:#b3261e;--note:#7a5700;--same:#8a97a6;--equivalent:#b6c2cf;--differs:#c8401a;--onlyV2:#1f5fbf;--onlyV3:#7b3fb3;--unknown:#616c79;--delay:#1f5fbf;--ink:#ffffffb8;--edge:#fff}}
`
