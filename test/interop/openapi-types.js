// Writes the TypeScript types of openapi.json to src/openapi/contract.generated.ts, or to the file that is given.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import openapiTypescript, { astToString } from 'openapi-typescript';
import ts from 'typescript';

const BIGINT = ts.factory.createKeywordTypeNode(ts.SyntaxKind.BigIntKeyword);

const contract = readFileSync(new URL('../../openapi.json', import.meta.url));
const types = await openapiTypescript(JSON.parse(contract), {
  // JavaScript's number cannot hold an int64.
  transform: (schema) => (schema.format === 'int64' ? BIGINT : undefined),
});
writeFileSync(
  process.argv[2] ?? 'src/openapi/contract.generated.ts',
  `// Made by \`npm run openapi:types\` from openapi.json. Not to be changed by hand.
// SHA-256 of openapi.json: ${createHash('sha256').update(contract).digest('hex')}
${astToString(types)}`,
);
