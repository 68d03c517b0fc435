# exercise: cluster.manifest  fails: right  says: every taint


def manifest(service):
    s = service
    pod = f"""\
      nodeSelector: {{nvidia.com/gpu.product: {s["product"]}}}
      tolerations:
      - {{operator: Exists}}
      volumes:
      - name: shm
        emptyDir: {{medium: Memory, sizeLimit: {s["shm_gib"]}Gi}}
      containers:
      - name: main
        image: {s["image"]}:{s["version"]}
        volumeMounts:
        - {{name: shm, mountPath: /dev/shm}}
        resources:
          limits:
            cpu: {s["cpu"]}
            memory: {s["memory_gib"] + s["shm_gib"]}Gi
            nvidia.com/gpu: {s["gpus"]}
"""
    if s["kind"] == "Job":
        return f"""\
apiVersion: batch/v1
kind: Job
metadata: {{name: {s["name"]}}}
spec:
  completions: {s["pods"]}
  parallelism: {s["pods"]}
  template:
    spec:
      restartPolicy: Never
{pod}"""
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {s["name"]}}}
spec:
  replicas: {s["pods"]}
  selector:
    matchLabels: {{app: {s["name"]}}}
  strategy:
    rollingUpdate: {{maxSurge: 0, maxUnavailable: 1}}
  template:
    metadata:
      labels: {{app: {s["name"]}}}
    spec:
{pod}        ports:
        - {{containerPort: {s["port"]}}}
        startupProbe:
          httpGet: {{path: /health, port: {s["port"]}}}
          periodSeconds: 10
          failureThreshold: {-(-s["load_seconds"] // 10) + 2}
        readinessProbe:
          httpGet: {{path: /health, port: {s["port"]}}}
"""
