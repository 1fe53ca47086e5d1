// `print` writes the OpenAPI document that the decorators describe; `check` compares it with openapi.json.
import { deepStrictEqual } from 'node:assert';
import { readFileSync } from 'node:fs';
import { createApp } from '../dist/src/app.js';
import { loadConfig } from '../dist/src/config/config.js';
import { buildDocument } from '../dist/src/openapi/document.js';
import { createLogger } from '../dist/src/logging/logging.js';

const config = loadConfig({ LOG_LEVEL: 'silent' });
const document = buildDocument(await createApp(config, createLogger(config.operations)));

if (process.argv[2] === 'check') {
  const contract = JSON.parse(readFileSync(new URL('../openapi.json', import.meta.url), 'utf8'));
  try {
    deepStrictEqual(JSON.parse(JSON.stringify(document)), contract);
    console.log('The decorators and openapi.json are the same document.');
  } catch (error) {
    // Plus marks what the decorators have, minus what openapi.json has.
    console.error(error.message);
    process.exitCode = 1;
  }
} else {
  console.log(JSON.stringify(document, null, 2));
}
process.exit();
