import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseDatabaseUrl } from './database-url.js';

/** @returns the hosts with their ports, and whether the connection needs a writable one. */
const read = (url: string) => {
  const { hosts, needsWritable } = parseDatabaseUrl(url);
  return [hosts.map(({ host, port }) => `${host} ${port}`).join(', '), needsWritable];
};

test.each([
  ['postgres://u:p@h/d', 'h 5432', false],
  ['postgresql://u:@h:5433/d', 'h 5433', false],
  ['postgres://u:%25%40%2F@[::1]:5433/d', '::1 5433', false],
  ['postgres://u@h/d?target_session_attrs=read-write', 'h 5432', true],
  ['postgres:///d?host=/run/postgresql', '/run/postgresql 5432', false],
  ['postgres://u@/d?host=/run/postgresql&port=5433', '/run/postgresql 5433', false],
  ['postgres://u:p@%2Frun%2Fpostgresql/d', '/run/postgresql 5432', false],
  ['socket:/run/postgresql?db=d', '/run/postgresql 5432', false],
  ['postgres://u:p@h1:5433,h2:5434/d', 'h1 5433, h2 5434', true],
  ['postgres://u:p@h1,[::1]:5434,h3/d?sslmode=disable', 'h1 5432, ::1 5434, h3 5432', true],
  ['postgres://h1,h2/d?target_session_attrs=any', 'h1 5432, h2 5432', false],
  ['postgres://u:a%2Cb@h1,h2/d?target_session_attrs=primary', 'h1 5432, h2 5432', true],
  ['postgres:///d?host=h1,h2&port=5433,5434', 'h1 5433, h2 5434', true],
  ['postgres://u@/d?host=h1,h2&port=5433', 'h1 5433, h2 5433', true],
])('Reads the hosts of %s', (url, hosts, needsWritable) => {
  expect(read(url)).toEqual([hosts, needsWritable]);
});

test('Reads the file of sslrootcert, and reports one that it cannot read', () => {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-url-'));
  const file = join(folder, 'ca.pem');
  const url = `postgres://h/d?sslmode=verify-full&sslrootcert=${file}`;
  try {
    expect(() => read(url)).toThrow(/^names a file in sslrootcert.* that cannot be read \(ENOENT\)$/);
    writeFileSync(file, 'a certificate');
    expect(read(url)).toEqual(['h 5432', false]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
