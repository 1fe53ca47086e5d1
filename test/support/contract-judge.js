import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Contract } from './contract.js';

const SHOWN = 20;

/**
 * A Jest reporter that checks every response of the contract's operations (see recorded-responses.ts) against
 * openapi.json alone. It fails the run if one does not conform. It fails a run of all tests also if a declared response
 * was never seen, because a check of nothing always succeeds.
 */
export default class ContractJudge {
  #isWholeRun;
  #error;

  constructor({ testPathPatterns, testNamePattern, onlyChanged, onlyFailures, shard }) {
    const isPart = testPathPatterns.isSet() || testNamePattern || onlyChanged || onlyFailures || shard;
    this.#isWholeRun = !isPart;
  }

  onRunComplete(contexts) {
    const contract = new Contract(JSON.parse(readFileSync('openapi.json', 'utf8')));
    const folder = process.env.PLANT_STORE_TEST_RESPONSES;
    const responses = readdirSync(folder).flatMap((file) =>
      readFileSync(join(folder, file), 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line)),
    );
    const judged = responses.map((response) => ({ response, ...contract.judge(response) }));
    const outside = judged.flatMap(({ response: { status, text, testFile }, violations }) =>
      violations.map((violation) => `${violation}\n  ${status} ${text}\n  in ${testFile}`),
    );
    const isOwed =
      this.#isWholeRun && [...contexts].some(({ config }) => config.displayName.name === 'service');
    const unseen = isOwed ? contract.declared.filter((one) => !judged.some(({ by }) => by === one)) : [];
    if (responses.length === 0 && unseen.length === 0) return;

    const total = responses.reduce((sum, { times }) => sum + times, 0);
    const verdict = `Judged ${total} responses (${responses.length} different): ${outside.length} outside openapi.json`;
    const lack = unseen.length === 0 ? [] : [`Declared but never seen: ${unseen.join(', ')}`];
    process.stderr.write(`${[verdict, ...lack, ...outside.slice(0, SHOWN)].join('\n')}\n`);
    if (outside.length + unseen.length > 0) this.#error = new Error([verdict, ...lack].join('. '));
  }

  getLastError() {
    return this.#error;
  }
}
