import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

test('the types that the code implements are what openapi-typescript makes of the contract', () => {
  const types = execFileSync(process.execPath, ['test/interop/openapi-types.js'], { encoding: 'utf8' });
  expect(readFileSync('src/openapi/contract.generated.ts', 'utf8')).toBe(types);
});
