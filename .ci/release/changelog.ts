const UNRELEASED = '## [Unreleased]';

/**
 * Returns the text below the heading of a version, or of `Unreleased`; undefined if CHANGELOG.md
 * has no such heading.
 */
export function sectionOf(changelog: string, version: string): string | undefined {
  const lines = changelog.split('\n');
  const start = lines.findIndex((line) => line.startsWith(`## [${version}]`));
  if (start === -1) return undefined;
  const length = lines.slice(start + 1).findIndex((line) => line.startsWith('## '));
  const end = length === -1 ? lines.length : start + 1 + length;
  return lines
    .slice(start + 1, end)
    .join('\n')
    .trim();
}

/** Returns whether a section lists a change. Headings alone are none. */
export function listsChanges(section: string): boolean {
  return section.split('\n').some((line) => /\S/.test(line) && !line.startsWith('#'));
}

/** Moves the content of `Unreleased` to a new version. `date` is YYYY-MM-DD. */
export function releaseSection(changelog: string, version: string, date: string): string {
  return changelog.replace(UNRELEASED, `${UNRELEASED}\n\n## [${version}] - ${date}`);
}

/**
 * Returns the text with its relative links below `base`: a release is read elsewhere than the file.
 */
export function withAbsoluteLinks(text: string, base: string): string {
  return text.replaceAll(/\]\((?![a-z]+:|#)/g, `](${base}/`);
}
