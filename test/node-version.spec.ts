import { readFileSync } from 'node:fs';

const read = (path: string) => readFileSync(path, 'utf8');
const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } };

/** The first release of each line that does not hash `"0"`, `"1"`, … into one bucket (CVE-2026-21717). */
const FIRST_SAFE = { 20: '20.20.2', 22: '22.22.2', 24: '24.14.1', 25: '25.8.2' };

test('The minimum Node.js of each line is the first release without CVE-2026-21717', () => {
  expect(engines.node.match(/\d+\.\d+\.\d+/g)).toEqual(Object.values(FIRST_SAFE));
});

test('The documents name the same releases', () => {
  const { 20: iron, 22: jod, 24: krypton } = FIRST_SAFE;
  for (const page of ['README.md', 'docs/OPERATIONS.md'])
    expect([page, [iron, jod, krypton].filter((release) => !read(page).includes(release))]).toEqual([
      page,
      [],
    ]);
});

test('.nvmrc, the image and the CI use the same line', () => {
  const line = read('.nvmrc').trim();
  expect(Object.keys(FIRST_SAFE)).toContain(line);
  const images = [...read('Dockerfile').matchAll(/^FROM node:(\d+)/gm)].map(([, major]) => major);
  expect(new Set(images)).toEqual(new Set([line]));
  expect(/^newest_node=(\d+)\./m.exec(read('.ci/run'))?.[1]).toBe(line);
});
