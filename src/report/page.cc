#include "report/page.h"

#include "core/check.h"
#include "core/concat.h"
#include "report/svg.h"

namespace pace {
namespace {

// Run colours keep 3:1 against their ground and stay apart for the common
// kinds of colour blindness; dashes and hatchings carry the rest.
constexpr std::string_view kPalette = R"css(
:root{color-scheme:light dark;--ground:#fff;--panel:#fff;--ink:#1b1f24;--soft:#57606a;
--grid:#e4e7eb;--axis:#8c959f;--rule:#d8dde3;--reject:#6e7781;
--c0:#0067a8;--c1:#c2570c;--c2:#00805e;--c3:#9b3d8a;--c4:#7a6a00;--c5:#2f8fb5;--c6:#59626d;
--c7:#a12c3a;--generation:#d98a1f;--pool:#1f6fb2;--assembly:#86b6dd;
--train:#1f6fb2;--wait:#b9c2cc;--sync:#2a9d78;--rescore:#d9741f;--other:#67717c}
@media (prefers-color-scheme:dark){:root{--ground:#12151a;--panel:#171b21;--ink:#e6e9ed;
--soft:#9da7b3;--grid:#2a3038;--axis:#6b7682;--rule:#2f363f;--reject:#8b95a1;
--c0:#5aaeed;--c1:#f0924c;--c2:#3fc79a;--c3:#dd8ccb;--c4:#cfbc45;--c5:#7fd0ee;--c6:#aab4bf;
--c7:#ef7f88;--generation:#e5a649;--pool:#4a9be0;--assembly:#2c5f8d;
--train:#4a9be0;--wait:#4a535e;--sync:#3cb58d;--rescore:#ee924a;--other:#8d97a3}}
)css";

// What pictures are drawn with, on a page or alone.
constexpr std::string_view kPictureRules = R"css(
svg text{font:12.5px system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;fill:var(--soft)}
.grid{stroke:var(--grid);fill:none}.axis{stroke:var(--axis);fill:none}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}
.band{fill-opacity:.16}.dot{fill:none;stroke-width:4.6;stroke-linecap:round}
.limit{stroke:var(--c7);stroke-dasharray:1 3;fill:none;stroke-width:1.5}
.s0{stroke:var(--c0)}.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}.s3{stroke:var(--c3)}
.s4{stroke:var(--c4)}.s5{stroke:var(--c5)}.s6{stroke:var(--c6)}.s7{stroke:var(--c7)}
.f0{fill:var(--c0)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}
.f4{fill:var(--c4)}.f5{fill:var(--c5)}.f6{fill:var(--c6)}.f7{fill:var(--c7)}
)css";

constexpr std::string_view kPageRules = R"css(
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:1320px;margin:0 auto;padding:28px 20px 64px}
h1,h2,h3,figcaption,tbody th,li,p,summary{overflow-wrap:anywhere}
h1{font-size:clamp(1.5rem,4vw,2.1rem);line-height:1.2;margin:.1em 0 .4em}
h2{font-size:1.35rem;margin:2.6em 0 .3em;padding-top:1em;border-top:1px solid var(--rule)}
h3{font-size:1.05rem;margin:1.8em 0 .3em}
p{margin:.3em 0 1em;max-width:68ch}
.kicker{margin:0;color:var(--soft);font-size:.85rem;letter-spacing:.04em}
.sentences{padding-left:1.1em;max-width:78ch}.sentences li{margin:.45em 0}
.charts{display:grid;gap:0 18px;grid-template-columns:repeat(auto-fill,minmax(min(100%,276px),1fr));
margin:.8em 0 .4em}
.charts.large{grid-template-columns:repeat(auto-fill,minmax(min(100%,420px),1fr))}
.charts.timeline{grid-template-columns:minmax(0,1fr)}
.timeline>.chart{overflow-x:auto}.timeline svg[role=img]{min-width:560px}
.timeline .key{max-width:calc(100vw - 60px)}
.one-run li[data-key]{display:none}
.charts.two{grid-template-columns:minmax(0,1fr);align-items:start}
.charts.two .panel{margin:0}.charts.two .chart{max-width:640px}
@media (min-width:1100px){.charts.two{grid-template-columns:minmax(0,2fr) minmax(0,3fr)}}
.chart{margin:0 0 16px;padding:12px 12px 8px;background:var(--panel);border:1px solid var(--rule);
border-radius:8px;display:flex;flex-direction:column;min-width:0}
.chart>svg{width:100%;height:auto;display:block;margin-top:auto}
@supports (grid-template-rows:subgrid){
.charts:not(.two)>.chart{display:grid;grid-row:span 4;grid-template-rows:subgrid}}
figcaption{font-weight:600;font-size:.95rem;margin-bottom:2px}
.note,.missing{color:var(--soft);font-size:.85rem;margin:.2em 0 0}
.missing{border-left:3px solid var(--rule);padding-left:10px;margin:.8em 0}
.key{list-style:none;display:flex;flex-wrap:wrap;gap:2px 14px;margin:2px 0 6px;padding:0;
font-size:.82rem;color:var(--soft)}
.key li{display:flex;align-items:center;gap:5px;min-width:0}
.main-key .key{font-size:.95rem;color:var(--ink);gap:4px 18px}
.key li[role=button]{cursor:pointer;border-radius:4px}.key li.off{opacity:.4}
.swatch{width:22px;height:12px;flex:none;vertical-align:-1px}th .swatch{margin-right:7px}
.panel{margin:.8em 0 1.2em;border:1px solid var(--rule);border-radius:8px;
background:var(--panel);min-width:0;overflow:hidden}
.scroll{overflow-x:auto}.title{padding:10px 12px 2px;margin:0;font-weight:600;font-size:.95rem}
table{border-collapse:collapse;width:100%;font-size:.87rem;font-variant-numeric:tabular-nums}
th,td{padding:6px 8px;text-align:right;white-space:nowrap;border-top:1px solid var(--grid)}
thead th{color:var(--soft);font-weight:500;border-top:0;white-space:normal;vertical-align:bottom}
th:first-child{text-align:left;min-width:9.5em;max-width:20em;white-space:normal;position:sticky;padding-left:12px;
left:0;background:var(--panel)}
tbody th{font-weight:600}
details{margin:.6em 0;border:1px solid var(--rule);border-radius:8px;padding:6px 12px}
summary{cursor:pointer;font-weight:600;font-size:.95rem}
pre{overflow-x:auto;font-size:.8rem;line-height:1.4;margin:.5em 0}
svg .bar-name{font-size:13px;font-weight:600;fill:var(--ink)}
svg .bar-total{font-size:13px;fill:var(--ink)}
.gap{stroke:var(--axis);stroke-dasharray:2 3;fill:none}
.faint{fill:none;stroke-width:1;stroke-linejoin:round;opacity:.3}.mark.faint.dim{opacity:.03}
.outline{fill:none;stroke-width:2.4;stroke-linejoin:miter}
.mark{transition:opacity .15s}.mark.dim{opacity:.07}rect.mark:hover{opacity:.75}
.pale{fill-opacity:.38}.mean{stroke:var(--panel);stroke-width:1}.mean-line{fill:none;stroke-width:1.2}
.rejected{fill:url(#hatch-rejected)}.offered{stroke:var(--reject)}
.generation{fill:var(--generation)}.pool{fill:var(--pool)}.assembly{fill:url(#hatch-assembly)}
.part{stroke:var(--panel);stroke-width:1}
.t-train{fill:var(--train)}.t-wait{fill:url(#hatch-wait)}.t-sync{fill:var(--sync)}
.t-rescore{fill:var(--rescore)}.t-other{fill:var(--other)}.t-hidden{fill:url(#hatch-hidden)}
.t-engine{fill:var(--c3)}.idle{fill:var(--grid)}
.warnings{border:1px solid var(--rule);border-left:4px solid var(--c1);border-radius:8px;
background:var(--panel);padding:8px 14px;margin:1em 0;max-width:none}
.warnings h2{border:0;margin:0;padding:0;font-size:1rem}
.warnings ul{margin:.3em 0;padding-left:1.1em;font-size:.92rem}.warnings li{margin:.3em 0}
.facts{display:flex;flex-wrap:wrap;gap:2px 22px;margin:.2em 0 .8em;padding:0;list-style:none;
font-size:.92rem}.facts b{font-weight:500;color:var(--soft);margin-right:.4em}
.responses{display:grid;gap:14px;grid-template-columns:repeat(auto-fill,minmax(min(100%,420px),1fr));
margin:.8em 0;align-items:start}
.response{border:1px solid var(--rule);border-radius:8px;background:var(--panel);padding:10px 14px;
min-width:0}.response h4{margin:0;font-size:.95rem;overflow-wrap:anywhere}
.response p{margin:.2em 0 .5em;font-size:.85rem;color:var(--soft)}
.said span{font-size:.75rem;color:var(--soft)}
.said pre{white-space:pre-wrap;overflow-wrap:anywhere;max-height:16em;overflow-y:auto;margin:0 0 .5em;
padding:6px 8px;border-radius:6px;background:var(--ground);border:1px solid var(--grid)}
.said.asked pre{max-height:8em}.said.tool pre{border-left:3px solid var(--sync)}
code{font-size:.85em;overflow-wrap:anywhere}
.reference{fill:var(--ink);stroke:var(--panel);stroke-width:1.5}
.reference-line{stroke:var(--ink);fill:none}
.patterns{position:absolute;width:0;height:0;overflow:hidden}
#reading{position:fixed;pointer-events:none;z-index:2;background:var(--panel);color:var(--ink);
border:1px solid var(--rule);border-radius:6px;padding:6px 9px;font-size:.8rem;line-height:1.4;
box-shadow:0 2px 10px rgb(0 0 0/.18);max-width:min(320px,90vw);white-space:pre-line}
@media (max-width:600px){main{padding:18px 14px 48px}.chart{padding:10px 8px 6px}}
@media (min-width:900px){.charts.large svg text,.timeline svg text{font-size:8.5px}
.charts.large .line{stroke-width:1.3}.charts.large .dot{stroke-width:3.4}}
@media print{.chart,.panel{break-inside:avoid}}
)css";

// Two comforts: the key hides runs, and a line chart tells its values where
// the pointer is.
std::string_view PageScript() {
  return R"js(
(()=>{
const all=(q,e=document)=>[...e.querySelectorAll(q)];
for(const item of all('[data-key]')){
  const run=item.dataset.key;
  const flip=()=>{
    const off=!item.classList.contains('off');
    all(`[data-key="${run}"]`).forEach(e=>{e.classList.toggle('off',off);
      e.setAttribute('aria-pressed',String(!off));});
    all(`[data-run="${run}"]`).forEach(e=>e.classList.toggle('dim',off));
  };
  item.setAttribute('role','button');item.setAttribute('aria-pressed','true');
  item.tabIndex=0;item.addEventListener('click',flip);
  item.addEventListener('keydown',e=>{if(e.key==='Enter'||e.key===' '){e.preventDefault();flip();}});
}
const reading=document.createElement('div');reading.id='reading';reading.hidden=true;
document.body.append(reading);
const short=v=>Math.abs(v)>=100?v.toFixed(0):Math.abs(v)>=1?v.toFixed(2):v.toPrecision(3);
for(const svg of all('svg[data-plot]')){
  const [l,r,t,b,x0,x1,y0,y1]=svg.dataset.plot.split(',').map(Number);
  const lines=all('path.mark.line',svg).map(p=>({path:p,
    name:p.querySelector('title')?.textContent??'',
    points:p.getAttribute('d').slice(1).split('L').map(s=>s.split(' ').map(Number))}));
  all('path.mark>title',svg).forEach(e=>e.remove());
  const cross=document.createElementNS('http://www.w3.org/2000/svg','path');
  cross.setAttribute('class','gap');svg.append(cross);
  svg.addEventListener('pointermove',e=>{
    const box=svg.getBoundingClientRect();
    const x=(e.clientX-box.left)*svg.viewBox.baseVal.width/box.width;
    if(x<l||x>r){reading.hidden=true;return;}
    const rows=lines.filter(i=>!i.path.classList.contains('dim')).map(i=>{
      const p=i.points.reduce((a,c)=>Math.abs(c[0]-x)<Math.abs(a[0]-x)?c:a);
      return Math.abs(p[0]-x)>12?'':
        `${i.name}: ${short(y0+(b-p[1])*(y1-y0)/(b-t))}`;}).filter(Boolean);
    cross.setAttribute('d',`M${x} ${t}L${x} ${b}`);
    const at=x0+(x-l)*(x1-x0)/(r-l),name=svg.dataset.x;
    reading.textContent=[name==='step'?`step ${Math.round(at)}`:`${short(at)} ${name}`,...rows].join('\n');
    reading.hidden=false;
    const left=Math.min(e.clientX+14,innerWidth-reading.offsetWidth-8);
    reading.style.left=`${Math.max(8,left)}px`;reading.style.top=`${e.clientY+14}px`;
  });
  svg.addEventListener('pointerleave',()=>{reading.hidden=true;cross.removeAttribute('d');});
}
})();
)js";
}

std::string_view PagePatterns() {
  return R"svg(<svg class="patterns" aria-hidden="true"><defs>
<pattern id="hatch-rejected" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="5" height="5" style="fill:var(--reject);fill-opacity:.28"/><rect width="1.6" height="5" style="fill:var(--reject)"/></pattern>
<pattern id="hatch-assembly" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" style="fill:var(--assembly)"/><rect width="1.5" height="6" style="fill:var(--panel);fill-opacity:.65"/></pattern>
<pattern id="hatch-wait" width="5" height="5" patternUnits="userSpaceOnUse"><rect width="5" height="5" style="fill:var(--wait)"/><circle cx="2.5" cy="2.5" r=".9" style="fill:var(--panel)"/></pattern>
<pattern id="hatch-hidden" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><rect width="5" height="5" style="fill:var(--panel)"/><rect width="2.2" height="5" style="fill:var(--rescore)"/></pattern>
</defs></svg>
)svg";
}

}  // namespace

std::string RenderPage(const Page& page) {
  return Concat(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" "
      "content=\"light dark\"><link rel=\"icon\" href=\"data:,\"><title>",
      Escape(page.title), "</title>\n<style>", kPalette, kPictureRules, kPageRules,
      "</style></head>\n<body", page.is_one_run ? " class=\"one-run\"" : "", ">", PagePatterns(),
      "<main>\n", page.content, "</main>\n<script>", PageScript(), "</script></body></html>\n");
}

std::string RenderSection(std::string_view id, std::string_view heading,
                          std::string_view introduction, const std::string& content) {
  return Concat("<section id=\"", id, "\"><h2>", heading, "</h2><p>", introduction, "</p>", content,
                "</section>\n");
}

std::string MissingNote(std::string_view text) {
  return Concat("<p class=\"missing\">", Escape(text), "</p>");
}

std::string StandalonePicture(std::string_view svg) {
  constexpr std::string_view kOpen = "<svg ";
  PACE_CHECK(svg.starts_with(kOpen), "must be a picture");
  const size_t inside = svg.find('>') + 1;
  return Concat(kOpen, "xmlns=\"http://www.w3.org/2000/svg\" ",
                svg.substr(kOpen.size(), inside - kOpen.size()), "<style>", kPalette, kPictureRules,
                "svg{background:var(--ground)}</style>", svg.substr(inside), "\n");
}

}  // namespace pace
