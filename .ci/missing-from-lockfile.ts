import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

type Lockfile = { packages: Record<string, { version?: string; link?: boolean }> };

/**
 * What is installed in `root` although its package-lock.json does not name it there, or names another version of it. One
 * line each; install scripts that fetch packages of their own are the usual cause.
 */
export function missingFromLockfile(root: string): string[] {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lockfile;
  return installedIn(root, 'node_modules').flatMap((path) => {
    const locked = packages[path];
    const installed = versionIn(join(root, path));
    if (locked === undefined) return [`${path} (${installed}) is not in package-lock.json`];
    if (locked.link || locked.version === installed) return [];
    return [`${path} is ${installed}, package-lock.json has ${locked.version}`];
  });
}

/** Every package of a node_modules folder and those nested in it, by their paths from `root` as lockfiles write them. */
function installedIn(root: string, folder: string): string[] {
  return namesIn(join(root, folder)).flatMap((name) => {
    const path = posix.join(folder, name);
    return [path, ...installedIn(root, posix.join(path, 'node_modules'))];
  });
}

/** Folders and links, whether they have a package.json or not: both can be imported. Names with a dot are of tools. */
function namesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder).filter((name) => !name.startsWith('.'));
  return names.flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(folder, name)).map((inner) => `${name}/${inner}`) : [name],
  );
}

function versionIn(folder: string): string {
  const file = join(folder, 'package.json');
  return existsSync(file) ? String(JSON.parse(readFileSync(file, 'utf8')).version) : 'without a package.json';
}
