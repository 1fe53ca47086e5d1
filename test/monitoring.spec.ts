import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dump, load } from 'js-yaml';
import { post } from './support/requests.js';
import { programPath } from './support/machine.js';
import { needs } from './support/requirements.js';
import { startService, unusedId } from './support/service.js';

const ALERTS = 'deploy/prometheus/alerts.yml';

interface Alerts {
  groups: { rules: { alert: string; expr: string }[] }[];
}
interface Dashboard {
  panels: { title: string; targets: { expr: string }[] }[];
}

const alerts = (load(readFileSync(ALERTS, 'utf8')) as Alerts).groups.flatMap(({ rules }) => rules);
const { panels } = JSON.parse(readFileSync('deploy/grafana/dashboard.json', 'utf8')) as Dashboard;
const queries = [
  ...alerts.map(({ alert, expr }) => ({ name: `alert ${alert}`, expr })),
  ...panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }) => ({
      name: `panel ${title}`,
      expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*'),
    })),
  ),
];

test('The alerts and the dashboard use only metrics of the service', async () => {
  const service = await startService({ env: { METRICS: 'on' } });
  try {
    await post(service.port, `{"id":${unusedId()},"name":"a"}`);
    const text = await (await fetch(`${service.url}/metrics`)).text();
    // Prometheus adds `up` itself.
    const measured = new Set(['up', ...Array.from(text.matchAll(/^[a-z_]+[a-z0-9_]*/gm), ([name]) => name)]);
    for (const { name, expr } of queries) {
      const asked = Array.from(expr.matchAll(/([a-z_0-9]+)\{/g), ([, metric]) => metric as string);
      expect({ name, asked }).not.toEqual({ name, asked: [] });
      expect({ name, unknown: asked.filter((metric) => !measured.has(metric)) }).toEqual({
        name,
        unknown: [],
      });
    }
  } finally {
    await service.stop();
  }
});

test('docs/OPERATIONS.md names every alert', () => {
  const manual = readFileSync('docs/OPERATIONS.md', 'utf8');
  for (const { alert } of alerts) expect(manual).toContain(`\`${alert}\``);
});

needs('promtool')('promtool', () => {
  const promtool = (...args: string[]) =>
    execFileSync(programPath('promtool') as string, args, { encoding: 'utf8' });

  test('accepts the queries of the dashboard', () => {
    const folder = mkdtempSync(join(tmpdir(), 'plant-store-'));
    const rules = queries.map(({ expr }, index) => ({ record: `query_${index}`, expr }));
    const file = join(folder, 'rules.yml');
    writeFileSync(file, dump({ groups: [{ name: 'queries', rules }] }));
    expect(promtool('check', 'rules', file)).toContain(`${rules.length} rules found`);
    rmSync(folder, { recursive: true });
  });

  test('accepts the alerts', () => {
    expect(promtool('check', 'rules', ALERTS)).toContain(`${alerts.length} rules found`);
  });
});
