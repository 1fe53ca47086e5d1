import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { programPath } from '../support/machine.js';
import { needs } from '../support/requirements.js';
import { startService, TOKEN, type TestService } from '../support/service.js';

/** The pages whose commands are tested here; those of docs/CLIENTS.md are run by test/interop. */
const PAGES = [
  'README.md',
  ...['OPERATIONS', 'GATEWAY', 'CLIENTS', 'CONTRACT'].map((name) => `docs/${name}.md`),
];
const pages = PAGES.map((path) => ({ path, text: readFileSync(path, 'utf8') }));

/** @returns the text of each code block in the language. */
const blocks = (page: string, language: string) =>
  Array.from(
    readFileSync(page, 'utf8').matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm')),
    ([, text = '']) => text,
  );
function blockWith(page: string, language: string, part: string): string {
  const found = blocks(page, language).find((text) => text.includes(part));
  if (found === undefined) throw new Error(`${page} has no ${language} block with ${part}`);
  return found;
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'plant-store-documented-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(pages)('$path names only npm scripts and files that exist', ({ path, text }) => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };
  const asked = Array.from(
    text.matchAll(/npm (?:run )?(?:-s )?((?:[a-z]+:)[a-z:-]+|(?<=run )[a-z]+)/g),
    ([, name = '']) => name,
  );
  expect(asked.filter((name) => !(name in scripts))).toEqual([]);

  const links = Array.from(text.matchAll(/\]\((?!https?:)([^)#\s]+)/g), ([, target = '']) => target);
  expect(links.filter((target) => !existsSync(resolve(dirname(path), target)))).toEqual([]);
});

test.each(pages)('$path links only to anchors that exist', ({ path, text }) => {
  const anchors = Array.from(text.matchAll(/\]\(([^)#\s]*)#([\w-]+)\)/g), ([, target = '', anchor = '']) => ({
    target,
    anchor,
  }));
  const missing = anchors.filter(({ target, anchor }) => {
    const page = target === '' ? text : readFileSync(resolve(dirname(path), target), 'utf8');
    const headings = Array.from(page.matchAll(/^#+ (.+)$/gm), ([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\w\s-]/g, '')
        .replaceAll(' ', '-'),
    );
    return !headings.includes(anchor);
  });
  expect(missing).toEqual([]);
});

test('docs/GATEWAY.md makes a copy of openapi.json with version 3.0.3', () => {
  writeFileSync(join(folder, 'openapi.json'), readFileSync('openapi.json'));
  execFileSync('sh', ['-ec', blockWith('docs/GATEWAY.md', 'sh', '3.0.3')], { cwd: folder });
  const copy = JSON.parse(readFileSync(join(folder, 'openapi-3.0.json'), 'utf8')) as object;
  expect(copy).toEqual({ ...(JSON.parse(readFileSync('openapi.json', 'utf8')) as object), openapi: '3.0.3' });
});

test('docs/OPERATIONS.md makes a digest that the service accepts for the token', async () => {
  const [line = ''] =
    /^echo "ACCESS_TOKENS=.*/m.exec(blockWith('docs/OPERATIONS.md', 'sh', 'install -m 600')) ?? [];
  const file = join(folder, 'plant-store.env');
  execFileSync('sh', ['-ec', line.replace('/etc/plant-store.env', file)], { env: { ...process.env, TOKEN } });
  const made = readFileSync(file, 'utf8');
  const service = await startService({ env: { ACCESS_TOKENS: made.trim().replace('ACCESS_TOKENS=', '') } });
  try {
    expect((await create(service)).status).toBe(200);
  } finally {
    await service.stop();
  }
});

/** Sends the request of README's curl command. */
function create(service: TestService): Promise<Response> {
  const [, headerLines = ''] =
    /curl -X POST[^]*?(-H[^]*)/.exec(blockWith('README.md', 'sh', 'curl -X POST')) ?? [];
  const headers = Array.from(
    headerLines.matchAll(/-H '([^:]+): ([^']*)'/g),
    ([, name = '', value = '']) => [name, value] as [string, string],
  );
  const [, body = ''] = /-d '([^']*)'/.exec(headerLines) ?? [];
  return fetch(`${service.url}/plants`, {
    method: 'POST',
    body,
    headers: [...headers.filter(([name]) => name !== 'Authorization'), ['Authorization', `Bearer ${TOKEN}`]],
  });
}

needs('jq')('A documented jq command', () => {
  test.each(
    blocks('docs/OPERATIONS.md', 'sh').flatMap((text) =>
      Array.from(text.matchAll(/\| (jq .*)$/gm), ([, command = '']) => command),
    ),
  )('finds lines of the log: %s', async (command) => {
    const service = await startService();
    try {
      const requestId = (/requestId == "([^"]+)"/.exec(command)?.[1] ?? 'a').replace('…', 'x');
      const headers = { 'X-Request-Id': requestId };
      await fetch(`${service.url}/nothing`, { headers });
      await service.sql('ALTER TABLE plants RENAME TO hidden');
      await create(service);
      const input = `a line of Compose\n${service.logs()}`;
      const { status, stdout } = spawnSync('sh', ['-c', command.replace('…', 'x')], {
        input,
        encoding: 'utf8',
      });
      expect(status).toBe(0);
      expect(
        stdout
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as unknown),
      ).not.toEqual([]);
    } finally {
      await service.sql('ALTER TABLE IF EXISTS hidden RENAME TO plants');
      await service.stop();
    }
  });
});

needs('promtool')('promtool', () => {
  test('accepts the documented configuration', () => {
    const file = join(folder, 'prometheus.yml');
    writeFileSync(file, blockWith('docs/OPERATIONS.md', 'yaml', 'scrape_configs'));
    writeFileSync(join(folder, 'alerts.yml'), readFileSync('deploy/prometheus/alerts.yml'));
    expect(
      execFileSync(programPath('promtool') as string, ['check', 'config', file], { encoding: 'utf8' }),
    ).toContain('SUCCESS');
  });
});

needs('nginx')('nginx', () => {
  test('accepts the documented rate limit', () => {
    const [inHttp = '', inServer = ''] = blockWith('docs/GATEWAY.md', 'nginx', 'limit_req')
      .split('\n')
      .filter((line) => line.startsWith('limit_req'));
    const file = join(folder, 'nginx.conf');
    const own = readFileSync('deploy/gateway/nginx.conf', 'utf8');
    writeFileSync(
      file,
      own.replace('http {', `http { ${inHttp}`).replace('server {', `server { ${inServer}`),
    );
    const { status, stderr } = spawnSync(
      programPath('nginx') as string,
      ['-t', '-p', folder, '-c', file, '-g', `pid ${folder}/pid;`],
      { encoding: 'utf8' },
    );
    expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
  });
});

needs('haproxy')('HAProxy', () => {
  test('accepts the documented rate limit', () => {
    const lines =
      /^```\n# in the frontend\n([^]*?)^```$/m.exec(readFileSync('docs/GATEWAY.md', 'utf8'))?.[1] ?? '';
    const file = join(folder, 'haproxy.cfg');
    const own = readFileSync('deploy/gateway/haproxy.cfg', 'utf8');
    writeFileSync(file, own.replace('bind :8080', `bind :8080\n${lines}`));
    const { status, stderr } = spawnSync(programPath('haproxy') as string, ['-c', '-f', file], {
      encoding: 'utf8',
    });
    expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
  });
});

needs('psql', 'TEST_DATABASE_URL')('PostgreSQL', () => {
  test.each(blocks('docs/OPERATIONS.md', 'sql').filter((text) => !text.includes('citus')))(
    'accepts %s',
    async (text) => {
      const service = await startService();
      try {
        // Roll back, because a role belongs to the whole server.
        const role = `plant_app_${String(process.pid)}`;
        await service.sql(`BEGIN; CREATE ROLE ${role}; ${text.replaceAll('plant_app', role)}; ROLLBACK`);
      } finally {
        await service.stop();
      }
    },
  );
});
