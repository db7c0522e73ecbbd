/** Which policy the pods are scheduled by: exactly one member is set. */
export interface SchedulingPolicy {
  /** Each pod for itself, as without a group. */
  basic?: Record<string, never> | null;
  /** All pods or none; `minCount` is the number of replicas unless it is set. */
  gang?: { minCount?: number | null } | null;
}

/** Where a group may be placed. */
export interface SchedulingConstraints {
  /** At most one: the label of nodes that names the domain which the whole group shares. */
  topology?: { key: string }[] | null;
}

/** Whether preemption takes one pod or the whole group: exactly one member is set. */
export interface DisruptionMode {
  single?: Record<string, never> | null;
  all?: Record<string, never> | null;
}

/** A ResourceClaim that the pods of a group share. */
export interface GroupResourceClaim {
  name: string;
  resourceClaimName?: string | null;
  resourceClaimTemplateName?: string | null;
}

/** The intent: what a user writes into `spec.scheduling`, or into the annotation. */
export interface StatefulSetSchedulingConfiguration {
  schedulingPolicy?: SchedulingPolicy | null;
  schedulingConstraints?: SchedulingConstraints | null;
  disruptionMode?: DisruptionMode | null;
  /** At most 4. */
  resourceClaims?: GroupResourceClaim[] | null;
}

/** Where intents are read from. */
export type Carrier = "field" | "annotation";

/** The settings of the policy. */
export interface Settings {
  /** As Kubernetes writes them: `A=true,B=false`. */
  featureGates?: string | null;
  carriers?: Carrier[] | null;
  /** The users that the project's controller is. */
  controllers?: string[] | null;
  /** The users that the cluster's own StatefulSet controller is. */
  statefulSetControllers?: string[] | null;
  podGroupOwnerReference?: boolean | null;
}

/** The metadata that are read; others may be there. */
export interface ObjectMeta {
  name?: string;
  namespace?: string;
  uid?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  [member: string]: unknown;
}

/** A StatefulSet of `apps/v1`, as far as it is read; what else is in it is left alone. */
export interface StatefulSet {
  apiVersion?: "apps/v1";
  kind?: "StatefulSet";
  metadata: ObjectMeta;
  spec: {
    replicas?: number;
    podManagementPolicy?: "OrderedReady" | "Parallel";
    scheduling?: StatefulSetSchedulingConfiguration | null;
    template?: { metadata?: ObjectMeta; spec?: Record<string, unknown> };
    [member: string]: unknown;
  };
  [member: string]: unknown;
}

/** The kinds of errors that Kubernetes tells apart. */
export type FieldErrorType =
  | "FieldValueRequired"
  | "FieldValueDuplicate"
  | "FieldValueInvalid"
  | "FieldValueNotSupported"
  | "FieldValueForbidden"
  | "FieldValueTooLong"
  | "FieldValueTooMany"
  | "FieldValueTypeInvalid";

/** What is wrong with a field, in Kubernetes' words. */
export interface FieldError {
  type: FieldErrorType;
  /** Where it is, as the user wrote it. */
  field: string;
  /** The value it is about. */
  badValue?: unknown;
  /** What is wrong, and what to change. */
  detail: string;
  /** The whole message but for the field. */
  body: string;
  /** Which declarative rule found it. */
  origin?: string;
}

/** What is asked of {@link validate}. */
export interface ValidateQuestion {
  scheduling?: StatefulSetSchedulingConfiguration | null;
  /** What it was, for an update. */
  oldScheduling?: StatefulSetSchedulingConfiguration | null;
  operation?: "CREATE" | "UPDATE" | null;
  featureGates?: string | null;
}

/** What validation found, layer by layer. */
export interface Report {
  /** The StatefulSet's own rules. */
  statefulset: FieldError[];
  /** The rules of what is compiled. */
  builder: FieldError[];
  /** The structural rules. */
  declarative: FieldError[];
  /** What is accepted and yet hardly meant. */
  warnings: string[];
}

/** What is asked of {@link compile}. */
export interface CompileQuestion {
  statefulSet: StatefulSet;
  settings?: Settings | null;
}

/** The metadata of an object that is yet to be created. */
export interface CompiledMeta {
  name: string;
  namespace: string | null;
  annotations: Record<string, string> | null;
  ownerReferences:
    | {
        apiVersion: string;
        kind: string;
        name: string;
        uid: string;
        controller?: boolean;
        blockOwnerDeletion?: boolean;
      }[]
    | null;
}

/** What a Workload's template and its PodGroup have in common. */
export interface GroupTemplate {
  schedulingPolicy: SchedulingPolicy;
  schedulingConstraints?: SchedulingConstraints;
  disruptionMode?: DisruptionMode;
  resourceClaims?: GroupResourceClaim[];
  priorityClassName?: string;
  priority?: number;
}

/** The Workload of a StatefulSet. */
export interface Workload {
  apiVersion: "scheduling.k8s.io/v1beta1";
  kind: "Workload";
  metadata: CompiledMeta;
  spec: {
    controllerRef?: { apiGroup?: string; kind: string; name: string };
    podGroupTemplates?: (GroupTemplate & { name: string })[];
  };
}

/** The PodGroup of a StatefulSet. */
export interface PodGroup {
  apiVersion: "scheduling.k8s.io/v1beta1";
  kind: "PodGroup";
  metadata: CompiledMeta;
  spec: GroupTemplate & {
    workloadRef?: { workloadName: string; templateName: string };
    parentCompositePodGroupName?: string;
  };
}

/** The two objects of a StatefulSet. What only the API server knows is written as `<…-uid>`. */
export interface Compiled {
  workload: Workload;
  podGroup: PodGroup;
}

/** What is wrong with an intent that cannot be compiled. */
export interface Refused {
  errors: FieldError[];
}

/** An `AdmissionRequest` of `admission.k8s.io/v1`, as far as it is read. */
export interface AdmissionRequest {
  uid?: string;
  kind: { group?: string; version?: string; kind: string };
  subResource?: string;
  operation: "CREATE" | "UPDATE" | "DELETE" | "CONNECT";
  namespace?: string;
  name?: string;
  userInfo?: { username?: string; [member: string]: unknown };
  options?: { [member: string]: unknown } | null;
  object?: object | null;
  oldObject?: object | null;
  [member: string]: unknown;
}

/** What is asked of {@link review}. */
export interface ReviewQuestion {
  request: AdmissionRequest;
  settings?: Settings | null;
}

/** One operation of a JSON Patch. */
export type PatchOperation =
  | { op: "add"; path: string; value: unknown }
  | { op: "remove"; path: string };

/** The answer to an admission request. */
export interface Verdict {
  allowed: boolean;
  /** Why it is denied; empty where it is allowed. */
  message: string;
  /** The HTTP status of a denial; 0 where it is allowed. */
  code: number;
  /** The errors behind a denial that is about fields. */
  errors: FieldError[];
  warnings: string[];
  /** What changes about the object. */
  patch: PatchOperation[];
}

/** Finds the StatefulSet of a pod: nothing where there is none; what is thrown is a failed look-up. */
export type FindStatefulSet = (namespace: string, name: string) => StatefulSet | null | undefined;

/** Any question. */
export type Query =
  | { review: ReviewQuestion }
  | { validate: ValidateQuestion }
  | { compile: CompileQuestion }
  | { workloadName: { ownerName: string; ownerUID: string } }
  | { podGroupName: { workloadName: string; templateName: string } };

/** The answer to a question. */
export type Answer<Q extends Query> = Q extends { review: unknown }
  ? Verdict
  : Q extends { validate: unknown }
    ? Report
    : Q extends { compile: unknown }
      ? Compiled | Refused | null
      : string;

/** Judges an intent for itself, without the StatefulSet around it. Throws what cannot be read. */
export function validate(question: ValidateQuestion): Report;

/** Compiles the intent of a StatefulSet: null if it has none. Throws what cannot be read. */
export function compile(question: CompileQuestion): Compiled | Refused | null;

/** Answers an admission request. Without `find`, pods of an opted-in StatefulSet are held. Throws what cannot be read. */
export function review(question: ReviewQuestion, find?: FindStatefulSet | null): Verdict;

/** Answers any question. Throws what cannot be read. */
export function query<Q extends Query>(question: Q): Answer<Q>;
