import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

test('The generated types are what openapi-typescript makes from the contract', () => {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-types-'));
  try {
    const file = join(folder, 'contract.generated.ts');
    execFileSync(process.execPath, ['test/interop/openapi-types.js', file]);
    expect(readFileSync('src/openapi/contract.generated.ts', 'utf8')).toBe(readFileSync(file, 'utf8'));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
