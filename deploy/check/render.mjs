// Renders the chart once for each engine, for who brings a cluster up from it.
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, template } from './tools.mjs';

const folder = join(root, 'dist/chart');
mkdirSync(folder, { recursive: true });
for (const engine of ['kubewarden', 'webhook']) {
  const path = join(folder, `${engine}.yaml`);
  // Under its name there is never half of it.
  const unfinished = `${path}.${process.pid}.tmp`;
  writeFileSync(unfinished, template({ engine, 'namespace.create': true }));
  renameSync(unfinished, path);
}
