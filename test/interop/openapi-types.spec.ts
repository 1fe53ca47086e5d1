import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

test('The generated types are what openapi-typescript makes from the contract', () => {
  const types = execFileSync(process.execPath, ['test/interop/openapi-types.js'], { encoding: 'utf8' });
  expect(readFileSync('src/openapi/contract.generated.ts', 'utf8')).toBe(types);
});
