"""The truth about each training of `answers/`."""

from __future__ import annotations

from _answer_truths import Function, Text, Truth

LOGGING = ("logging_in_loop", "item_in_loop", "per_step_sync")
GROWING = ("growing_container", "slowing_down")
MINIBATCHES = Function("update", "ppo.py")

TRUTHS: dict[str, Truth] = {
    # PPO by hand
    "ppo_minibatches": Truth(
        ("small_minibatch",),
        ("update",),
        (MINIBATCHES, "size = 256 if options.fix else 32", "update(agent, optimizer, batch, epochs=4, size=size)"),
        pairs=False,
    ),
    "ppo_writer": Truth(LOGGING, (), (Function("write"),), pairs=False, one_core=False),
    "ppo_grad_norms": Truth(
        LOGGING,
        (),
        (
            Text(
                "for name, parameter in agent.named_parameters():",
                'history[f"spread/{name}"].append(parameter.grad.std().item())',
            ),
        ),
    ),
    "ppo_print": Truth(
        LOGGING, (), ('print("epoch", epoch, "loss", loss, batch["advantages"][rows], batch["returns"][rows])',)
    ),
    "ppo_progress": Truth(
        ("evaluation_too_often",),
        ("evaluation",),
        (Function("evaluate"), "scores.append(evaluate(agent, test, 10))", "if iteration % every == every - 1:"),
        pairs=False,
    ),
    "ppo_checkpoints": Truth(
        ("checkpoint_too_often",),
        ("checkpoint",),
        (Text("if not options.fix or iteration % 20 == 19:", "torch.save(state, folder / name)"),),
        pairs=False,
        one_core=False,
    ),
    "ppo_env_list": Truth(
        ("policy_per_env", "tiny_batch_inference"),
        (),
        (Text("for i in range(ENVS):", "rollout.values[step, i] = value"), Function("act", "ppo.py")),
    ),
    "ppo_readings": Truth(
        ("per_item_conversion",),
        (),
        ("tensor = torch.tensor([[float(x) for x in row] for row in obs], dtype=torch.float32)",),
    ),
    "ppo_gae": Truth(
        ("python_gae",),
        ("advantage",),
        (Function("advantages_of"), "advantages = gae(rollout) if options.fix else advantages_of(rollout)"),
    ),
    "ppo_precision": Truth(("float64",), ("update",)),
    "ppo_careful": Truth(("anomaly_mode",), ("update",)),
    "ppo_adam": Truth(
        ("unfused_optimizer",),
        ("optimizer_step",),
        (
            "optimizer.step()",
            "optimizer = torch.optim.AdamW(agent.parameters(), 2.5e-4, foreach=False, fused=options.fix)",
        ),
    ),
    "ppo_scaled_rewards": Truth(
        GROWING, (), (Function("__call__"), "scaled = scaler(reward + obs[:, 0])"), pairs=False
    ),
    "ppo_collecting": Truth(("gc_pauses",), (), ("gc.collect()",)),
    "ppo_shaping": Truth(
        ("import_in_loop",),
        (),
        ("importlib.reload(shaping)", Function("distances", "shaping.py")),
    ),
    "ppo_uploads": Truth(
        ("sleeping", "idle_waiting"), (), (Text("while metrics.unfinished_tasks:", "time.sleep(0.05)"),), one_core=False
    ),
    "ppo_async_mixed": Truth(("straggler_env",), ("env_step",), one_core=False),
    "ppo_serial": Truth(("single_core_env",), ("env_step",), one_core=False),
    "ppo_perception": Truth(("worker_threads", "torch_threads"), ("env_step",), one_core=False),
    "ppo_wide": Truth(("torch_threads",), ("update",), one_core=False),
    "ppo_remote": Truth(
        ("network_env",),
        ("env_step",),
        (
            Function("send"),
            Function("receive"),
            "answers.append(robot.receive())",
            Text("def step(self, actions: Any) -> Any:", "dones = np.array([done for _, done in answers])"),
        ),
        one_core=False,
    ),
    "ppo_pixels": Truth(("rendering",), ("render", "env_render"), ("self.render()", Function("render", "worlds.py"))),
    "ppo_downscaled": Truth(("heavy_wrapper",), (), (Function("observation"),)),
    "ppo_swarm": Truth(("python_loop",), (), (Function("forces"),)),
    "ppo_unrolled": Truth(
        ("forward_one_by_one",),
        ("loss_forward",),
        (Function("forward"), "features = agent(rollout.obs, before, options.fix)"),
    ),
    "ppo_loader": Truth(("dataloader_restarts",), (), (Function("timed"),), pairs=False, one_core=False),
    # DQN by hand
    "dqn_tidy": Truth(("gc_pauses",), (), ("gc.collect()",), pairs=False),
    "dqn_snapshots": Truth(("lock_wait",), (), ("snapshots.lock.acquire()",), pairs=False, one_core=False),
    "dqn_remote_state": Truth(
        ("network_env",),
        ("env_step",),
        (
            Function("request"),
            'parts = [self.request({"action": int(action), "part": part}) for part in ("player", "map")]',
        ),
        one_core=False,
    ),
    "dqn_frames": Truth(
        ("copying",), (), ("self.rows.append(copy.deepcopy(transition) if self.copies else transition)",)
    ),
    "dqn_episodes": Truth(("memory_growth",), (), ("video.append(np.tile(following, (64, 4)))",), costs_time=False),
    "dqn_lists": Truth(
        ("restacking", "growing_container"),
        (),
        ("return [torch.from_numpy(np.stack(column)[rows]) for column in self.columns]",),
        pairs=False,
    ),
    "dqn_target": Truth(("copying",), (), (Function("blended"), "target = blended(q, target)")),
    "dqn_arrays": Truth(
        ("growing_container", "copying"), (), ("self.rows = np.append(self.rows, [row], axis=0)",), pairs=False
    ),
    "dqn_tensors": Truth(("growing_container", "copying"), (), ("self.rows = torch.cat([self.rows[1:], row[None]])",)),
    "dqn_priorities": Truth(
        (*GROWING, "weighted_sampling"), (), (Function("draw"), "rows = priorities.draw(64)"), pairs=False
    ),
    "dqn_journal": Truth(
        LOGGING,
        (),
        (
            Text(
                'journal.write(json.dumps({"obs": obs.tolist(), "action": action, "reward": float(reward)}) + "\\n")',
                "os.fsync(journal.fileno())",
            ),
        ),
        one_core=False,
    ),
    "dqn_mean_return": Truth(
        GROWING,
        (),
        ("report.append(fmean(reward for obs, reward in transitions if obs[0] > -9))",),
        pairs=False,
    ),
    # SAC, REINFORCE and imitation by hand
    "sac_history": Truth(
        ("copying", "growing_container"), (), ("self.rows = np.concatenate([self.rows[1:], obs[None]])",)
    ),
    "sac_snapshots": Truth(
        ("copying",),
        (),
        ("earlier.append(copy.deepcopy((sac.actor, sac.critics, sac.critic_optimizer)))",),
        pairs=False,
    ),
    "sac_nested": Truth(
        ("per_item_conversion",), (), ("batch = [torch.tensor(column, dtype=torch.float32) for column in columns]",)
    ),
    "reinforce_levels": Truth(
        ("reset_storm",),
        ("env_reset",),
        (Function("generate"), "self.walls = generate(self.np_random)", "obs, _ = env.reset()"),
    ),
    "reinforce_losses": Truth(
        ("memory_growth",),
        (),
        (
            Text(
                "logprobs = Categorical(logits=policy(torch.stack(seen))).log_prob(torch.stack(actions))",
                "losses.append(loss.item() if options.fix else loss)",
            ),
        ),
        costs_time=False,
    ),
    "reinforce_compiled": Truth(
        ("recompiling",),
        (),
        (Function("loss_of"), "loss = compiled(torch.stack(seen), torch.stack(actions), returns)"),
        pairs=False,
        one_core=False,
    ),
    "bc_demonstrations": Truth(
        ("dataloader_restarts", "dataloader_workers"),
        ("data_loading", "pipe_wait"),
        ("pairs = list(loader)",),
        pairs=False,
        one_core=False,
    ),
    "dagger_teacher": Truth(
        ("forward_one_by_one", "teacher_one_by_one", "policy_per_env", "tiny_batch_inference"),
        (),
        ('labels = torch.stack([teacher(row).argmax(-1) for row in batch["obs"]])',),
    ),
    # stable-baselines3
    "sb3_ppo_batches": Truth(
        ("small_minibatch",),
        ("update",),
        (
            Text(
                "size = 128 if options.fix else 16",
                "model.learn(512 * options.iterations, callback=Clock(updates=True))",
            ),
        ),
        pairs=False,
    ),
    "sb3_dqn_scores": Truth(
        ("evaluation_too_often",),
        ("evaluation",),
        (
            Text("if self.n_calls % self.eval_freq:", "return super()._on_step()"),
            "every = 2000 if options.fix else 200",
            "evaluation = Evaluation(test, n_eval_episodes=20, eval_freq=every, verbose=0)",
            "model.learn(200 + 200 * options.iterations, callback=[Clock(), evaluation])",
        ),
        pairs=False,
    ),
    "sb3_a2c_records": Truth(
        LOGGING,
        (),
        (
            Text(
                "for name, parameter in self.model.policy.named_parameters():",
                "self.logger.dump(self.num_timesteps)",
            ),
        ),
        pairs=False,
    ),
    "sb3_sac_saves": Truth(
        ("checkpoint_too_often",),
        ("checkpoint",),
        (
            "return super()._on_step()",
            "every = 500 if options.fix else 5",
            "saves = Saves(every, tempfile.mkdtemp(), save_replay_buffer=True)",
            "model.learn(100 + 50 * options.iterations, callback=[Clock(), saves])",
        ),
        pairs=False,
        one_core=False,
    ),
    "sb3_ppo_best": Truth(("copying",), (), ("self.policy = copy.deepcopy(self.model.policy)",)),
    "sb3_ppo_terrains": Truth(("straggler_env",), ("env_step",), one_core=False),
    "sb3_a2c_simulations": Truth(("single_core_env",), ("env_step",), one_core=False),
    "sb3_ppo_processes": Truth(("cheap_env_workers",), ("env_step", "env_wait"), one_core=False),
    "sb3_a2c_smoothed": Truth(("heavy_wrapper",), (), (Function("observation"),)),
    # TorchRL
    "torchrl_minibatches": Truth(
        ("small_minibatch",),
        (),
        (
            "size = 128 if options.fix else 16",
            Text("for _ in range(3 * FRAMES // size):", "learner.step(learner.buffer.sample())"),
            Function("step", "torchrl_parts.py"),
        ),
        pairs=False,
    ),
    "torchrl_reports": Truth(
        LOGGING,
        (),
        (
            Text(
                "print({key: value.item() for key, value in losses.items() if value.numel() == 1})",
                'print(minibatch["advantage"].squeeze(), minibatch["observation"], minibatch["value_target"])',
            ),
        ),
    ),
    "torchrl_tests": Truth(
        ("evaluation_too_often",),
        ("evaluation",),
        (
            Text(
                "if number % every == every - 1:",
                'scores.append(float(test.rollout(100, learner.actor)["next", "reward"].sum()))',
            ),
        ),
        pairs=False,
    ),
    # healthy trainings
    "dqn_prefilled": Truth(),
    "healthy_async_ppo": Truth(),
    "healthy_ppo": Truth(),
    "healthy_sac": Truth(),
    "healthy_sb3_dqn": Truth(),
    "healthy_sb3_ppo": Truth(),
    "healthy_torchrl_ppo": Truth(),
}
