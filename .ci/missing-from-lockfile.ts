import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

type Packages = Record<string, { version?: string; link?: boolean; resolved?: string }>;

/**
 * Returns one line per package that is installed in `root` but missing from its package-lock.json,
 * or there in another version. The usual cause is an install script that downloads packages.
 */
export function missingFromLockfile(root: string): string[] {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Packages;
  };
  return installedIn(root, 'node_modules', packages).flatMap((path) => {
    const locked = packages[path];
    const installed = versionIn(join(root, path));
    if (locked === undefined) return [`${path} (${installed}) is not in package-lock.json`];
    if (locked.link || locked.version === installed) return [];
    return [`${path} is ${installed}, package-lock.json has ${locked.version}`];
  });
}

/**
 * Returns the paths of all packages in a node_modules folder, including nested ones, relative to
 * `root` as in lockfiles. There, packages below a link have the path of the folder that it leads
 * to.
 */
function installedIn(root: string, folder: string, packages: Packages): string[] {
  return namesIn(join(root, folder)).flatMap((name) => {
    const path = posix.join(folder, name);
    const { link, resolved } = packages[path] ?? {};
    return [
      path,
      ...installedIn(root, posix.join((link && resolved) || path, 'node_modules'), packages),
    ];
  });
}

/**
 * Returns folders and links, with or without package.json, since both can be imported. Names with a
 * leading dot belong to tools.
 */
function namesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder).filter((name) => !name.startsWith('.'));
  return names.flatMap((name) =>
    name.startsWith('@')
      ? readdirSync(join(folder, name)).map((inner) => `${name}/${inner}`)
      : [name],
  );
}

function versionIn(folder: string): string {
  const file = join(folder, 'package.json');
  return existsSync(file)
    ? String(JSON.parse(readFileSync(file, 'utf8')).version)
    : 'without a package.json';
}
