/** Commands that are not executed, and why. */
export const EXCEPTIONS: [command: RegExp, reason: string][] = [
  [/^npx dawatch demo|^npm ci && npm run demo/, 'readme.install.ts runs it'],
  [/^npx dawatch proof/, 'docs-chain.test.ts runs it with a node'],
  [/^npm install --global dawatch/, 'all pages share one installation, of the packed package'],
  [/^docker /, 'needs Docker; image.install.ts runs docker-compose.yml with Podman'],
  [/^kubectl |^for pod in \$\(kubectl/, 'needs a cluster'],
  [/^helm /, 'needs a cluster; helm.install.ts renders the chart with the values of the page'],
  [/^cosign |^npm audit signatures/, 'needs a published release'],
  [/^psql /, 'needs the database of the old poller'],
  [/api (?:DELETE )?.v1.mutes(?:.1| --data)/, 'needs a mute, or a time in the future'],
  [/\/var\/lib\/dawatch/, 'changes the machine; backup.md has the same commands on a folder'],
  [/^systemctl (?:dis|en)able|^useradd|^install |^cp |^nginx|prometheus$/, 'changes the machine'],
  [/^journalctl/, 'needs systemd'],
];
/** Other blocks that have no checker, by their first line. */
export const UNCHECKED: [firstLine: RegExp, reason: string][] = [
  [/^position x |^block_hash = /, 'a picture'],
  [/^id: 42\n/, 'a part of a response'],
  [/^<script type="importmap">/, 'browser.install.ts loads the client with it'],
  [/^snapshot: /, 'no package has Litestream 0.5; helm.install.ts compares the keys'],
];
