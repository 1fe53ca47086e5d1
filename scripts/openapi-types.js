// Prints the TypeScript types of openapi.json: what `npm run openapi:types` writes to src/openapi/contract.generated.ts.
import { readFileSync } from 'node:fs';
import openapiTypescript, { astToString } from 'openapi-typescript';
import ts from 'typescript';

const BIGINT = ts.factory.createKeywordTypeNode(ts.SyntaxKind.BigIntKeyword);

const document = JSON.parse(readFileSync(new URL('../openapi.json', import.meta.url), 'utf8'));
const types = await openapiTypescript(document, {
  // JavaScript's number can't hold an int64.
  transform: (schema) => (schema.format === 'int64' ? BIGINT : undefined),
});
process.stdout.write(
  `// Made from openapi.json by \`npm run openapi:types\`. Not to be changed by hand.\n${astToString(types)}`,
);
