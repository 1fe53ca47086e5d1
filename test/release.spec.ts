import { readFileSync } from 'node:fs';

const read = (path: string) => readFileSync(path, 'utf8');

test('the newest release of the changelog is the version of the package, and of its lock file', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string };
  const [newest] = [...read('CHANGELOG.md').matchAll(/^## (?!Unreleased)(\S+) \(\d{4}-\d\d-\d\d\)$/gm)];
  expect(newest?.[1]).toBe(version);
  expect(JSON.parse(read('package-lock.json'))).toMatchObject({ version });
});
