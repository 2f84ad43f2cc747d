import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/** Builds the program as it is published, which starts in half the time of its sources. */
export default function build(): void {
  const cwd = join(import.meta.dirname, '../../..');
  execFileSync('npm', ['run', '--silent', 'build'], {
    cwd,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}
