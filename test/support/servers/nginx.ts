import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { tempFolder } from '../temp-folder.ts';

/** A variable, because knip would report a literal as a missing package. */
const NGINX = 'nginx';

/** For `it.skipIf`: CI skips nothing, so the tests that need nginx fail there without it. */
export const IS_NGINX_MISSING = !process.env.CI && spawnSync(NGINX, ['-v']).status !== 0;

/**
 * Starts nginx for the duration of a test, with its file of docs/production.md and https at a port
 * of 127.0.0.1. It serves the server at `target` below `path`, which begins and ends with a slash.
 */
export async function startNginx({
  port,
  path,
  target,
  tls,
}: {
  port: number;
  path: string;
  target: string;
  tls: { key: string; cert: string };
}): Promise<void> {
  const folder = tempFolder();
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join(' ');
  writeFileSync(join(folder, 'pair.pem'), `${tls.key}${tls.cert}`);
  const site = readFileSync('deploy/host/nginx.conf', 'utf8')
    .replaceAll(/\/etc\/letsencrypt\/\S+\.pem/g, join(folder, 'pair.pem'))
    .replaceAll(/listen \[::\].*\n/g, '')
    .replace('listen 80', `listen unix:${folder}/80`)
    .replace('listen 443', `listen 127.0.0.1:${port}`)
    .replace('location /', `location ${path}`)
    .replace('http://127.0.0.1:8080', `${target}/`);
  const config = `
    daemon off; master_process off; error_log stderr notice; pid ${folder}/pid;
    events {}
    http { access_log off; ${temporary} ${site} }`;
  writeFileSync(join(folder, 'nginx.conf'), config);
  const child = spawn(NGINX, ['-c', join(folder, 'nginx.conf'), '-p', folder], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const closed = once(child, 'close');
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await closed;
  });
  let output = '';
  const started = new Promise<void>((resolve) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      // The first notice after the socket listens.
      if (/getrlimit/.test(output)) resolve();
    });
  });
  const failed = closed.then(() => {
    throw new Error(`nginx ended: ${output}`);
  });
  failed.catch(() => undefined);
  await Promise.race([started, failed]);
}
