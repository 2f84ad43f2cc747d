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
    .replaceAll(/\*([^*]+)\*/g, '<strong>$1</strong>');
}
