// `npm run bench -- --tricks`: what each optimization gains that makes the code longer or less usual. Each is switched
// off in turn, by a change of the compiled source.
import { emptyTable, loadOverHttp } from './load.js';
import { createDatabase } from './postgres.js';
import { median, printTable } from './report.js';
import { startService } from './servers.js';

const FULL = { rounds: 7, warmUp: 2, seconds: 3 };
const QUICK = { rounds: 1, warmUp: 1, seconds: 1 };

const CROWD = 64;
const FEW = 8;

/** What is switched off, at how many connections, and how: a file of `dist/src`, a text in it and its replacement. */
const TRICKS = [
  [
    'Constraints called without class-validator',
    CROWD,
    'json-body/dto-validation.pipe.js',
    'accepts(dto) ? dto :',
    '',
  ],
  ['Remembered tokens', CROWD, 'auth/bearer.guard.js', 'this.#accepted.get(digest)', 'undefined'],
  ['The known head of a connection', CROWD, 'connection/framing.js', 'head === this.#knownHead', 'false'],
  [
    'Requests made with the prototypes of Express',
    CROWD,
    'http/fast-express.adapter.js',
    'app.request = NativeRequest.prototype;',
    '',
  ],
  ['Literal routes', CROWD, 'http/fast-express.adapter.js', 'routeLiteralPaths(app)', 'app'],
  ['Methods of literal paths', CROWD, 'http/allowed-methods.js', 'known.get(path) ?? ', ''],
  [
    'Common headers written with the head',
    CROWD,
    'http/common-headers.js',
    'Array.isArray(headers) &&',
    'false &&',
  ],
  [
    'Headers of an Answer written with the head',
    CROWD,
    'http/fast-express.adapter.js',
    'sendJson(response, status, body.body, body.headers)',
    'sendJson(response.setHeaders(new Map(Object.entries(body.headers))), status, body.body)',
  ],
  ['Group commit', CROWD, 'plants/group-commit.js', 'batchRows: 64', 'batchRows: 1'],
  [
    'Statements of equal size',
    FEW,
    'plants/group-commit.js',
    'waiting.length >= Math.min(rowsInFlight, batchRows)',
    'true',
  ],
  ['Prepared statements', FEW, 'plants/plants.repository.js', 'rows > PREPARED_ROWS', 'true'],
];

export async function measureTricks({ isQuick }) {
  const plan = isQuick ? QUICK : FULL;
  const database = await createDatabase();
  const results = [];
  for (const [what, connections, ...patch] of TRICKS) {
    const rounds = [];
    for (let round = 0; round < plan.rounds; round++) {
      const measured = {};
      // A new process each time: two processes of the same program differ by as much as some of these gain.
      const turns = round % 2 === 0 ? ['on', 'off'] : ['off', 'on'];
      for (const turn of turns) measured[turn] = await measure(turn === 'off' ? [patch] : []);
      rounds.push(measured);
    }
    const ratio = (member) => median(rounds.map(({ on, off }) => off[member] / on[member]));
    results.push({ what, connections, cpu: ratio('serverCpu'), rate: ratio('rate'), rounds });

    async function measure(patches) {
      const service = await startService(database, { patches });
      await loadOverHttp(database, [service], { connections, seconds: plan.warmUp });
      await emptyTable(database);
      const measured = await loadOverHttp(database, [service], { connections, seconds: plan.seconds });
      await service.stop();
      return measured;
    }
  }
  printTable(
    ['Without', 'connections', 'CPU of a create', 'creates/s'],
    results.map(({ what, connections, cpu, rate }) => [
      what,
      connections,
      `× ${cpu.toFixed(2)}`,
      `× ${rate.toFixed(2)}`,
    ]),
  );
  return { database, plan, results };
}
