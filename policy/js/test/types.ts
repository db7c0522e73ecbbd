// Compiled, never run: the types say what the package takes and answers.
import init, { compile, query, review, validate } from "statefulset-scheduling-js";
import type {
  Compiled, FieldError, FieldErrorType, PatchOperation, Refused, Report, StatefulSet, StatefulSetSchedulingConfiguration, Verdict,
} from "statefulset-scheduling-js";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <T extends true>(): T | undefined => undefined;

const loaded: Promise<void> = init(new URL("https://example.org/core_bg.wasm"));
const bytes: Promise<void> = init(new Uint8Array());

const scheduling: StatefulSetSchedulingConfiguration = {
  schedulingPolicy: { gang: { minCount: 3 } },
  schedulingConstraints: { topology: [{ key: "topology.kubernetes.io/zone" }] },
  disruptionMode: { all: {} },
  resourceClaims: [{ name: "gpu", resourceClaimTemplateName: "gpus" }],
};
const statefulSet: StatefulSet = { metadata: { name: "web" }, spec: { replicas: 3, scheduling, serviceName: "web" } };

const report: Report = validate({ scheduling, operation: "CREATE" });
const type: FieldErrorType | undefined = report.declarative[0]?.type;
const compiled: Compiled | Refused | null = compile({ statefulSet, settings: { carriers: ["field"] } });
if (compiled && "workload" in compiled) {
  const kind: "Workload" = compiled.workload.kind;
  const count: number | null | undefined = compiled.podGroup.spec.schedulingPolicy.gang?.minCount;
} else if (compiled) {
  const errors: FieldError[] = compiled.errors;
}
const request = { kind: { group: "apps", kind: "StatefulSet" }, operation: "CREATE" as const, object: statefulSet };
const verdict: Verdict = review({ request }, (namespace, name) => (namespace + name ? statefulSet : null));
const patch: PatchOperation[] = verdict.patch;

const name = query({ workloadName: { ownerName: "web", ownerUID: "u" } });
holds<Equal<typeof name, string>>();
const answered = query({ review: { request } });
holds<Equal<typeof answered, Verdict>>();
const judged = query({ validate: { scheduling } });
holds<Equal<typeof judged, Report>>();

// @ts-expect-error: a policy that does not exist
validate({ scheduling: { schedulingPolicy: { all: {} } } });
// @ts-expect-error: a text is no count
validate({ scheduling: { schedulingPolicy: { gang: { minCount: "3" } } } });
// @ts-expect-error: no StatefulSet
compile({});
// @ts-expect-error: an operation that does not exist
review({ request: { kind: { kind: "Pod" }, operation: "PATCH" } });
// @ts-expect-error: no such question
query({ nothing: {} });
// @ts-expect-error: a carrier that does not exist
compile({ statefulSet, settings: { carriers: ["label"] } });
// @ts-expect-error: no such member
verdict.denied;
