"""Collection: environments play, choose their levels and starts, and fill the rollout.

Which code collects and learns follows from the policy's device, the observations, the stacks and the ranks:

=========  ===============================  =======  ==================  ==================  =====================
device     observations                     stacks   network             steps of a rollout  gradient steps
=========  ===============================  =======  ==================  ==================  =====================
processor  vectors, grids, sets             none     ``MLP``             compiled (1)        compiled epoch (2)
processor  those and pictures               any      ``MLP``             Python              parts by threads
processor  vectors, grids                   stacked  ``MLP``             Python              parts by threads
processor  sets                             stacked  ``TorchNetwork``    Python              parts by threads
processor  any in float16                   any      ``TorchNetwork``    Python              parts by threads
GPU        any but ``reachability``         any      ``DeviceNetwork``   ``DeviceCollector`` ``DevicePPO`` (2)
=========  ===============================  =======  ==================  ==================  =====================

(1) ``collector.play_steps``, for ``NPlusPlusVectorEnv`` itself, without masks, look-ahead, ``reachability`` or a reward
    function; else ``Collector._play_in_python``, as for environments of one's own.
(2) ``learn.ppo.learn_epoch``, on a GPU a graph, in one rank; in several, Python adds up their gradients in each
    minibatch.

``policies.mlp.covers`` and ``MLP.pass_arrays`` decide this, ``Batch.kernel_steps`` decides (1). Parts by threads are
``PPO._differentiate``: compiled with the ``MLP``, in torch else. All paths of one network take the same actions; the
tests of ``collector`` and ``ppo`` compare their bits.
"""
