// Writes a copy of openapi.json for tools that cannot resolve a server variable or need an example to send a valid
// request. The contract itself is not changed.
import { readFileSync, writeFileSync } from 'node:fs';
import { EXAMPLES, withExamples } from '../dist/src/openapi/examples.js';

const [address = '', file = 'openapi.for-tools.json'] = process.argv.slice(2);
if (!/^https?:\/\//.test(address) || !URL.canParse(address)) {
  console.error('Usage: npm run openapi:for-tools -- https://plants.example [file]');
  process.exit(1);
}
const contract = JSON.parse(readFileSync(new URL('../openapi.json', import.meta.url), 'utf8'));
const servers = [{ url: address.replace(/\/+$/, '') }];
writeFileSync(file, `${JSON.stringify(withExamples({ ...contract, servers }, EXAMPLES), null, 2)}\n`);
console.log(`${file}: ${servers[0].url}, with examples`);
