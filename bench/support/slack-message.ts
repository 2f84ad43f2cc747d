/** The body of a message to Slack, as the channel sends it. */
export type SlackMessage = { blocks: readonly { text: { text: string } }[] };

/** Shows messages about as Slack does, as an HTML page. */
export function slackPage(messages: readonly SlackMessage[]): string {
  return `<!doctype html><meta charset="utf-8"><style>${STYLE}</style>
    <main>${messages.map(articleOf).join('')}</main>`;
}

const STYLE = `
  main { width: 44rem; padding: 0.5rem 1.25rem; background: #fff; color: #1d1c1d; font: 15px/1.45 system-ui, sans-serif }
  article { display: grid; grid-template-columns: 2.25rem 1fr; gap: 0 0.75rem; padding-block: 0.75rem }
  article + article { border-top: 1px solid #e8e8e8 }
  .sign { grid-row: 1 / 99; height: 2.25rem; border-radius: 6px; background: #2457d6; color: #fff; font: 700 1.25rem/2.25rem system-ui; text-align: center }
  .app { margin-left: 0.4rem; padding: 0 0.25rem; border-radius: 3px; background: #e8e8e8; color: #616061; font-size: 0.65rem; font-weight: 700 }
  p { margin: 0.15rem 0 }
  code { padding: 0.1rem 0.25rem; border: 1px solid #ddd; border-radius: 3px; background: #f8f8f8; font: 0.8rem ui-monospace, "DejaVu Sans Mono", monospace }
  a { color: #1264a3; text-decoration: none }`;

function articleOf({ blocks }: SlackMessage): string {
  const lines = blocks.map(({ text }) => `<p>${htmlOf(text.text)}</p>`);
  return `<article>
    <div class="sign">✓</div>
    <div><strong>dawatch</strong><span class="app">APP</span></div>
    ${lines.join('')}
  </article>`;
}

/** The text is escaped for markup, which escapes the same characters as HTML. */
function htmlOf(markup: string): string {
  return markup
    .replaceAll(/<([^|>]+)\|([^>]+)>/g, '<a href="$1">$2</a>')
    .replaceAll(/`([^`]*)`/g, '<code>$1</code>')
    .replaceAll(/\*([^*]+)\*/g, '<strong>$1</strong>')
    .replace(/^(?:🚨|⚠️)/u, (sign) => SIGNS[sign] ?? sign);
}

/** Slack shows emoji as pictures. The paths are icons of Lucide (ISC license). */
const SIGNS: Record<string, string> = {
  '🚨': signOf(
    '#d0021b',
    'M7 18v-6a5 5 0 1 1 10 0v6M5 21a1 1 0 0 0 1 1h12a1 1 0 0 0 1-1v-1a2 2 0 0 0-2-2H7a2 2 0 0 0-2 2zM21 12h1M18.5 4.5 18 5M2 12h1M12 2v1M4.93 4.93l.7.7M12 12v6',
  ),
  '⚠️': signOf(
    '#b7791f',
    'm21.73 18-8-14a2 2 0 0 0-3.48 0l-8 14A2 2 0 0 0 4 21h16a2 2 0 0 0 1.73-3M12 9v4M12 17h.01',
  ),
};

function signOf(color: string, path: string): string {
  return `<svg viewBox="0 0 24 24" width="18" height="18" fill="none" stroke="${color}" stroke-width="2" stroke-linecap="round" style="vertical-align: -3px"><path d="${path}" /></svg>`;
}
