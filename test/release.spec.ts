import { readFileSync } from 'node:fs';

const read = (path: string) => readFileSync(path, 'utf8');

test('The newest release in CHANGELOG.md is the version in package.json and package-lock.json', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string };
  const [newest] = [...read('CHANGELOG.md').matchAll(/^## (?!Unreleased)(\S+) \(\d{4}-\d\d-\d\d\)$/gm)];
  expect(newest?.[1]).toBe(version);
  expect(JSON.parse(read('package-lock.json'))).toMatchObject({ version });
});
