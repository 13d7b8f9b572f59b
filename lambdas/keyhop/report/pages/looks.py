"""How the page looks: its rules of CSS. Pictures have theirs in colours.py. Pure."""

from typing import Final

PAGE: Final = """
*{box-sizing:border-box}
html{background:var(--paper);color:var(--ink);-webkit-text-size-adjust:100%}
body{margin:0 auto;max-width:1240px;padding:28px 24px 48px;
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}
h1{font-size:30px;line-height:1.15;margin:0;letter-spacing:-.01em;overflow-wrap:anywhere}
h1 small{font-size:14px;font-weight:400;color:var(--soft);margin-left:12px;letter-spacing:0}
h2{font-size:13px;text-transform:uppercase;letter-spacing:.07em;color:var(--soft);
margin:40px 0 12px;padding-top:12px;border-top:1px solid var(--rule);font-weight:600}
h3{font-size:16px;line-height:1.3;margin:0 0 2px;overflow-wrap:anywhere}
p{margin:0 0 6px}small{color:var(--soft);font-size:12px;font-weight:400}
.soft{color:var(--soft);font-size:13px;overflow-wrap:anywhere}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.87em}
code{overflow-wrap:anywhere}
.head dl{display:flex;flex-wrap:wrap;gap:8px 36px;margin:16px 0 0}
.head dt{font-size:12px;color:var(--soft)}
.head dd{margin:0;font-size:19px;font-variant-numeric:tabular-nums}
.tally{margin:18px 0 0;font-size:17px;font-weight:600}
.finding{display:grid;grid-template-columns:92px minmax(0,1fr) minmax(0,.85fr);gap:4px 24px;
padding:14px 16px;margin:0 0 10px;background:var(--panel);border-left:4px solid var(--info);
border-radius:3px;break-inside:avoid}
.finding.high{border-color:var(--high)}.finding.medium{border-color:var(--medium)}
.finding.low{border-color:var(--low)}
.label{display:flex;flex-direction:column;gap:1px}
.badge{font-weight:700;color:var(--info)}.badge.high{color:var(--high)}
.badge.medium{color:var(--medium)}.badge.low{color:var(--low)}
.badge.unknown{color:var(--unknown)}.badge.clear{color:var(--clear)}
.rule{color:var(--soft);font-size:13px}
.what p{margin-bottom:4px;overflow-wrap:anywhere}
.advice{border-left:1px solid var(--rule);padding-left:20px;font-size:14px}
.patterns{display:flex;flex-wrap:wrap;gap:4px 14px;font-weight:600}
.advice ol{margin:0 0 6px;padding-left:20px}.advice li{margin:0 0 2px;overflow-wrap:anywhere}
pre{margin:6px 0;padding:7px 10px;background:var(--paper);border:1px solid var(--rule);
border-radius:3px;white-space:pre-wrap;overflow-wrap:anywhere}
.money{color:var(--soft);font-variant-numeric:tabular-nums}
.calm{color:var(--clear);font-weight:600}
details{margin:4px 0;font-size:13px}.advice details{font-size:14px}.advice summary{font-size:13px}
summary{color:var(--soft);cursor:pointer}
figure{margin:0;min-width:0;break-inside:avoid}
figcaption,caption{font-weight:600;font-size:14px;text-align:left;margin:0 0 6px;padding:0 0 6px}
.grid{display:grid;grid-template-columns:repeat(12,minmax(0,1fr));gap:28px 36px}
.grid>figure{grid-column:span 4}
.grid>.map{grid-column:span 8;grid-row:span 2}
.kh-svg{display:block;width:100%;height:auto}.narrow{display:none}
.scroll{overflow-x:auto}
section>.scroll caption,details caption{position:absolute;width:1px;height:1px;overflow:hidden;
clip-path:inset(50%)}
.grid th small{display:block}.grid tbody th,.grid tbody td{vertical-align:middle}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th,td{text-align:left;vertical-align:top;padding:5px 14px 5px 0;border-top:1px solid var(--grid);
overflow-wrap:anywhere}
th:last-child,td:last-child{padding-right:0}
thead th{font-weight:400;color:var(--soft);font-size:12px;border-top:0;padding-top:0}
tbody th{font-weight:400;min-width:92px}section>.scroll td{min-width:72px}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap;overflow-wrap:normal}
.grid td:nth-child(2){width:34%;min-width:70px;vertical-align:middle}
.bar{display:block}.kh-bar{display:block;width:100%;height:14px}
@media (max-width:900px){
body{padding:20px 16px 40px}.head dl{gap:8px 24px}.head dd{font-size:17px}
.finding{grid-template-columns:minmax(0,1fr);padding:12px 14px}
.label{flex-direction:row;gap:8px;align-items:baseline}
.advice{border-left:0;padding:8px 0 0;border-top:1px solid var(--rule);margin-top:6px}
.grid{grid-template-columns:minmax(0,1fr)}
.grid>figure,.grid>.map{grid-column:auto;grid-row:auto}
.wide{display:none}.narrow{display:block}
.grid code{font-size:12px}}
@media print{
body{max-width:none;padding:0;font-size:11pt}h2{break-after:avoid}
.finding{background:none;border:1px solid var(--rule);border-left-width:4px}
details::details-content{content-visibility:visible;display:block}
summary{display:none}.scroll{overflow:visible}}
"""
